// Events as they happen.  A request waits at the service for the next one, and brings the newest rows; the rows also come
// when nothing has happened for a while, so that they say how long ago each was.

import { load } from "./session.js";

const PAUSE = 5000;
const SHORT = 1000;
const rest = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Wait until the reader looks at the page. */
async function seen() {
  while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

export function start(element) {
  const button = element.querySelector("[data-follow-button]");
  const status = element.querySelector("[data-follow-status]");
  let turn = 0; // of the loop that runs; any other one ends

  function stop(text) {
    turn++;
    button.setAttribute("aria-pressed", "false");
    status.textContent = text;
  }

  async function follow() {
    const mine = ++turn;
    const runs = () => mine === turn && element.isConnected;
    while (runs()) {
      await seen();
      const began = Date.now();
      const rows = element.querySelector("[data-rows]");
      const separator = element.dataset.follow.endsWith("?") ? "" : "&";
      const url = `${element.dataset.follow}${separator}position=${rows.dataset.position}`;
      const reply = await load(url).catch(() => null);
      if (!runs()) return;
      if (reply && !reply.ok) return stop(`Nothing more can be followed (${reply.status}). Load the page again.`);
      const page = reply && new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = page?.querySelector("[data-rows]");
      if (!runs()) return;
      const news = fresh && fresh.dataset.position !== rows.dataset.position;
      // What the reader has the focus in stays as it is.
      const kept = rows.contains(document.activeElement);
      if (fresh && !kept) rows.replaceWith(fresh);
      if (news && !kept) status.textContent = "Something has changed.";
      if (!fresh || kept || (!news && Date.now() - began < SHORT)) await rest(PAUSE);
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-pressed") === "true") return stop("The newest are not followed.");
    button.setAttribute("aria-pressed", "true");
    status.textContent = "The newest events are shown as they happen.";
    follow();
  });
}
