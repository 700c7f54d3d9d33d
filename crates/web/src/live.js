// Follows a running test: each event becomes a row of the table and a point of the line.
"use strict";
const script = document.currentScript;
const state = document.getElementById("state");
const rows = document.querySelector("#intervals tbody");
const line = document.querySelector("#graph polyline");
const most = document.getElementById("most");
const points = JSON.parse(script.dataset.points);

function rate(value) {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return value.toPrecision(3) + " " + units[unit];
}

function draw() {
  const last = points[points.length - 1][0] || 1;
  const high = Math.max(1, ...points.map((point) => point[1]));
  const at = ([time, value]) => (600 * time / last).toFixed(1) + "," + (195 - 190 * value / high).toFixed(1);
  line.setAttribute("points", points.map(at).join(" "));
  most.textContent = "Goodput of each interval, from zero to " + rate(high) + "; the numbers are below.";
}

function row(cells) {
  const row = rows.insertRow();
  for (const cell of cells) { row.insertCell().textContent = cell; }
}

const events = new EventSource(script.dataset.events);
events.onmessage = (message) => {
  const event = JSON.parse(message.data);
  if (event.event === "connected") { state.textContent = "The far host has answered."; }
  if (event.event === "began") { state.textContent = "Sending."; }
  if (event.event === "ended") { state.textContent = "Both hosts gather what they saw."; }
  if (event.event === "note") { state.textContent = event.text; }
  if (event.event === "trial-began") { state.textContent = "Runs " + event.values.join(" ") + "."; }
  if (event.event === "change-began") {
    state.textContent = "Tries " + event.change.setting + "=" + event.change.to + ".";
  }
  if (event.event === "interval") {
    const value = event.goodput_bits_per_s;
    row([event.from_s.toFixed(1) + " s", event.to_s.toFixed(1) + " s",
      typeof value === "number" ? rate(value) : "unknown"]);
    if (typeof value === "number") { points.push([event.to_s, value]); draw(); }
  }
};
events.addEventListener("end", (message) => {
  events.close();
  const end = JSON.parse(message.data);
  state.textContent = end.result ? "Ended. See " : "Ended without a result in the history. ";
  if (end.result) {
    const link = document.createElement("a");
    link.href = "/results/" + end.result;
    link.textContent = "the result";
    state.append(link, ". ");
  }
  state.append(end.said);
});
