// Follows a running test: each event becomes a row of the table and a point of a line.
"use strict";
const script = document.currentScript;
const state = document.getElementById("state");
const progress = document.getElementById("progress");
const overTime = document.getElementById("over-time");
const rows = document.querySelector("#intervals tbody");
const [near, far] = document.querySelectorAll("#graph polyline");
const rates = document.querySelectorAll(".rates span");
const times = document.querySelectorAll(".times span span");
const ends = JSON.parse(script.dataset.ends);
const lines = JSON.parse(script.dataset.points);
const directions = { near: "near → far", far: "far → near" };

function rate(value) {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) { value /= 1000; unit += 1; }
  const whole = Math.abs(value - Math.round(value)) <= value * 1e-12;
  return value.toFixed(whole || value >= 999.95 ? 0 : value >= 9.995 ? 1 : 2) + " " + units[unit];
}

function seconds(value) {
  return Number(value.toFixed(2)) + " s";
}

// Where an axis ends: at a round number above all values.
function axisEnd(values) {
  const most = Math.min(values.reduce((most, value) => Math.max(most, value), 1), 1e300);
  const power = 10 ** Math.floor(Math.log10(most));
  return power * (ends.find((end) => end * power >= most) ?? 10);
}

function draw() {
  const all = lines.near.concat(lines.far);
  const until = axisEnd(all.map((point) => point[0]));
  const top = axisEnd(all.map((point) => point[1]));
  const at = ([time, value]) => (400 * (time / until)).toFixed(1) + "," + (400 - 400 * (value / top)).toFixed(1);
  near.setAttribute("points", lines.near.map(at).join(" "));
  far.setAttribute("points", lines.far.map(at).join(" "));
  const parts = times.length - 1;
  times.forEach((label, part) => { label.textContent = seconds(until * part / parts); });
  rates.forEach((label, part) => { label.textContent = rate(top * (parts - part) / parts); });
}

// Each run of a comparison counts from its own start: a time that steps back begins the line anew.
function point(line, time, value) {
  if (line.length > 0 && time <= line[line.length - 1][0]) { line.length = 0; }
  line.push([time, value]);
}

function row(cells) {
  const row = rows.insertRow();
  for (const cell of cells) { row.insertCell().textContent = cell; }
}

function interval(event) {
  const value = event.goodput_bits_per_s;
  const known = typeof value === "number";
  overTime.hidden = false;
  const sent = event.sent_bits_per_s;
  const shown = known ? rate(value) : typeof sent === "number" ? rate(sent) + " sent" : "unknown";
  row([event.from_s.toFixed(1) + " s", event.to_s.toFixed(1) + " s", shown, directions[event.sender]]);
  if (known) { point(lines[event.sender], event.to_s, value); draw(); }
}

const events = new EventSource(script.dataset.events);
let said = null;
events.onerror = () => {
  said ??= state.textContent;
  const asks = events.readyState !== EventSource.CLOSED;
  state.textContent = "goodput web does not answer. " + (asks ? "This page asks again." : "Reload this page.");
};
events.onopen = () => {
  if (said !== null) { state.textContent = said; }
  said = null;
};
events.onmessage = (message) => {
  const event = JSON.parse(message.data);
  if (event.event === "connected") { state.textContent = "The far host has answered."; }
  if (event.event === "began") { state.textContent = "Sending."; }
  if (event.event === "ended") { state.textContent = "Both hosts gather what they saw."; }
  if (event.event === "note") { state.textContent = event.text; }
  if (event.event === "interval") { interval(event); }
};
// What several runs have found so far is made by the server, which escapes it.
events.addEventListener("progress", (message) => {
  progress.innerHTML = JSON.parse(message.data);
  overTime.hidden = rows.rows.length === 0;
});
events.addEventListener("end", (message) => {
  events.close();
  document.getElementById("stop")?.remove();
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
