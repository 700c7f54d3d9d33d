// What a person could not read of the open page: text that is cut off, and words that are torn.
(() => {
  const problems = [];
  const all = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const say = (what, text) => problems.push(`${what}: ${text.replace(/\s+/g, " ").slice(0, 100)}`);

  for (const text of all("svg text").filter((one) => one.textContent.trim())) {
    const [own, picture] = [text, text.ownerSVGElement].map((one) => one.getBoundingClientRect());
    if (own.left < picture.left - 1 || own.right > picture.right + 1) say("cut off at a side", text.textContent);
    if (own.top < picture.top - 1 || own.bottom > picture.bottom + 1) say("cut off above or below", text.textContent);
  }

  // On a phone, a printed report is moved to and fro. A command is in one line everywhere, to be copied.
  const isCommand = (line) => /(^|\s)(goodput|tc|ip|ethtool|sysctl) \w/.test(line);
  for (const text of all("pre").filter((one) => innerWidth >= 700 && one.scrollWidth > one.clientWidth + 1)) {
    const lines = text.textContent.split("\n");
    const longest = Math.max(...lines.map((line) => line.length));
    const room = longest * text.clientWidth / text.scrollWidth;
    const beyond = lines.find((line) => line.length > room && !isCommand(line));
    if (beyond) say("it scrolls", beyond);
  }

  // Words of headings, and values with their unit: a name that a peer chose may be longer than the page is wide.
  const words = [["th", /(?<!\S)\p{L}{2,14}(?!\S)/gu], ["time, .rate", /\S+/g]];
  const range = document.createRange();
  for (const [selector, pattern] of words) {
    for (const element of all(selector)) {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(pattern)) {
          range.setStart(walker.currentNode, word.index);
          range.setEnd(walker.currentNode, word.index + word[0].length);
          const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
          if (lines.size > 1) say("a torn word", word[0]);
        }
      }
    }
  }
  return problems;
})()
