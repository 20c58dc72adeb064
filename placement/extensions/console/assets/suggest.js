// Suggestions for the last name in a field; names are separated by commas, colons and exclamation marks.

import { load } from "./session.js";

const PAUSE = 150;
const NAME = /[^,:!]*$/;
let timer = 0;
let asked = 0;

export function start(element) {
  element.addEventListener("input", (event) => {
    const field = event.target.closest("[data-suggest]");
    if (!field) return;
    clearTimeout(timer);
    timer = setTimeout(() => suggest(element.dataset.suggestions, field).catch(console.error), PAUSE);
  });
}

async function suggest(address, field) {
  const [name] = field.value.match(NAME);
  const before = field.value.slice(0, field.value.length - name.length);
  if (!name) return;
  const mine = ++asked;
  const query = new URLSearchParams({ of: field.dataset.suggest, part: name });
  const reply = await load(`${address}?${query}`, { accept: "application/json" });
  if (!reply.ok || mine !== asked) return;
  const { names } = await reply.json();
  let list = field.list;
  if (!list) {
    list = document.createElement("datalist");
    list.id = `${field.id}-suggestions`;
    field.after(list);
    field.setAttribute("list", list.id);
  }
  list.replaceChildren(...names.map((suggestion) => new Option(suggestion, before + suggestion)));
}
