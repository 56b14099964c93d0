// Local times and keys; every page works without them.
"use strict";

document.documentElement.classList.add("scripted");

// Times are sent in UTC; hovering shows them so. Hovering over how long ago something was shows both.
const two = (number) => String(number).padStart(2, "0");
for (const time of document.querySelectorAll("time[data-time]")) {
  const at = new Date(time.dateTime);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (time.dataset.time === "ago") time.title = `${day} ${clock}, ${time.title}`;
  else time.textContent = time.dataset.time === "clock" ? `${clock}:${two(at.getSeconds())}` : `${day} ${clock}`;
}

const rows = [...document.querySelectorAll("[data-row] a[href]")].filter(
  (link, at, all) => all.findIndex((other) => other.closest("[data-row]") === link.closest("[data-row]")) === at,
);

function move(step) {
  const row = document.activeElement.closest("[data-row]");
  const at = rows.findIndex((link) => link.closest("[data-row]") === row);
  const next = row === null ? (step > 0 ? 0 : rows.length - 1) : at + step;
  rows[Math.min(Math.max(next, 0), rows.length - 1)]?.focus();
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  "/": () => document.querySelector("[data-find]").focus(),
  "?": () => document.querySelector("#keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
