// What axe and similar programs look for, as a list of problems of the open page.
(() => {
  const problems = [];
  const name = (element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 100);
  const say = (what, element) => problems.push(element ? `${what}: ${name(element)}` : what);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const visible = (element) => element.checkVisibility({ visibilityProperty: true });

  if (!document.title.trim()) say("no title");
  if (document.documentElement.lang !== "en") say("no language");
  for (const landmark of ["header", "nav", "main", "footer"]) {
    if (all(`body ${landmark}`).length === 0) say(`no ${landmark}`);
  }
  if (all("main").length !== 1) say("not one main");
  if (all("h1").length !== 1) say("not one h1");
  let level = 0;
  for (const heading of all("h1,h2,h3,h4,h5,h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say("a heading skips a level", heading);
    if (!heading.textContent.trim()) say("an empty heading", heading);
    level = own;
  }
  const navigations = all("nav");
  const names = new Set(navigations.map((nav) => nav.getAttribute("aria-label")));
  if (names.size !== navigations.length || names.has(null)) say("navigations without names of their own");

  for (const picture of all("img,svg")) {
    const label = picture.getAttribute("alt") ?? picture.getAttribute("aria-label");
    if (!label?.trim()) say("a picture without text", picture);
  }
  for (const input of all("input,select,textarea").filter(visible)) {
    const label = [...(input.labels ?? [])].map((l) => l.textContent).join("") || input.getAttribute("aria-label");
    if (!label?.trim()) say("an input without label", input);
  }
  for (const control of all("a,button,summary")) {
    if (!(control.textContent.trim() || control.getAttribute("aria-label"))) say("a control without name", control);
  }
  for (const table of all("table")) {
    if (!table.caption?.textContent.trim()) say("a table without caption", table);
    if (table.querySelector("th:not([scope])")) say("a heading without scope", table);
    if (!table.querySelector("th")) say("a table without headings", table);
  }
  const ids = all("[id]").map((element) => element.id);
  for (const id of ids) { if (ids.indexOf(id) !== ids.lastIndexOf(id)) say(`id ${id} twice`); }
  for (const element of all("[tabindex]")) { if (element.tabIndex > 0) say("an order of its own", element); }
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  for (const element of all("body *")) {
    if (element.scrollWidth > element.clientWidth + 1 && scrolls(element) && element.tabIndex < 0
      && !element.querySelector("a,button,input,[tabindex]")) say("it scrolls without keyboard", element);
  }

  // Contrast (WCAG 2.2, 1.4.3).
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below, share = 1) => {
    const a = top[3] * share;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.setProperty("background-color", "Canvas");
  const paper = rgba(getComputedStyle(probe).backgroundColor);
  probe.remove();
  const background = (element) => {
    if (!element) return paper;
    return over(rgba(getComputedStyle(element).backgroundColor), background(element.parentElement));
  };
  const opacity = (element) => element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1;
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const element of all("body *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!text || !visible(element) || element.matches("script,noscript,option")) continue;
    const style = getComputedStyle(element);
    const behind = background(element);
    const colour = rgba(element.ownerSVGElement ? style.fill : style.color);
    const [a, b] = [light(over(colour, behind, opacity(element))), light(behind)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < (large ? 3 : 4.5)) say(`contrast ${contrast.toFixed(2)}`, element);
  }
  return problems;
})()
