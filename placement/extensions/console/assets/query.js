// Keeps the form and the text of a query in sync.  The service renders the form for a text, so only the service parses.

import { load } from "./session.js";

const PAUSE = 350;
const readable = (text) => encodeURIComponent(text).replace(/%3A/g, ":").replace(/%2C/g, ",");

export function start(element) {
  const form = element.querySelector("[data-form]");
  const text = element.querySelector("[data-raw]");
  let timer = 0;
  let asked = 0;

  form.addEventListener("input", () => {
    clearTimeout(timer);
    asked++;
    const pairs = [...new FormData(form.closest("form"))].filter(([, value]) => value.trim());
    text.value = pairs.map(([name, value]) => `${readable(name)}=${readable(value.trim())}`).join("\n&");
  });

  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++asked;
      const reply = await load(`${element.dataset.query}?${new URLSearchParams({ raw: text.value })}`);
      if (!reply.ok || mine !== asked) return;
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      form.replaceChildren(...page.body.childNodes);
    }, PAUSE);
  });
}
