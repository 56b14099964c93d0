"use strict";
// Keys press the buttons that name them; without scripts the buttons work all the same.

const choices = document.querySelector(".choices");
const text = document.querySelector("pre");
const note = document.querySelector("#note");
const definitions = document.querySelector('[data-key="?"]');

if (text && text.dataset.begin === "end") text.scrollTop = text.scrollHeight;

function showDefinitions(shown) {
  choices.classList.toggle("brief", !shown);
  definitions.setAttribute("aria-pressed", shown);
  sessionStorage.setItem("definitions", shown);
}

if (definitions && choices) {
  definitions.hidden = false;
  showDefinitions(sessionStorage.getItem("definitions") !== "false");
  definitions.addEventListener("click", () => showDefinitions(choices.classList.contains("brief")));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target === note) {
    if (event.key === "Escape") note.blur();
    return;
  }
  if (event.key === "n" && note) {
    event.preventDefault();
    note.focus();
    return;
  }
  const button = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === event.key);
  if (button) {
    event.preventDefault();
    button.click();
  }
});
