// Progressive enhancement of the pages: the theme, sign-in by token, the heat map, the form of a query, and events that
// are followed.
// Without a token links and forms work as the browser has them.  With one, each page is fetched with it.

import { forget, keep, load, token } from "./session.js";

const base = document.documentElement.dataset.base;
const main = document.getElementById("main");
const say = (text) => (document.querySelector("[data-status]").textContent = text);

/** Start what the content of the page asks for. */
function enhance() {
  for (const element of main.querySelectorAll("[data-heat]")) {
    import("./heat.js").then((module) => module.start(element)).catch(console.error);
  }
  for (const element of main.querySelectorAll("[data-query]")) {
    import("./query.js").then((module) => module.start(element)).catch(console.error);
  }
  for (const element of main.querySelectorAll("[data-follow]")) {
    import("./follow.js").then((module) => module.start(element)).catch(console.error);
  }
  for (const element of main.querySelectorAll("[data-sortable]")) {
    import("./sort.js").then((module) => module.start(element)).catch(console.error);
  }
  for (const element of main.querySelectorAll("[data-suggestions]")) {
    import("./suggest.js").then((module) => module.start(element)).catch(console.error);
  }
  for (const element of main.querySelectorAll("[data-findings]")) complete(element);
  for (const button of main.querySelectorAll("[data-copy]")) copies(button);
  const form = main.querySelector("[data-token-form]");
  if (form) signIn(form);
  document.querySelector("[data-sign-out]").hidden = !token();
}

/** Make a button copy the text beside it; browsers allow that on HTTPS and loopback only. */
function copies(button) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

/** Load a part of the page that takes long to make, and put it in its place. */
async function complete(element) {
  const reply = await load(element.dataset.findings).catch(() => null);
  if (reply?.ok) element.innerHTML = await reply.text();
}

/** Show the form for a token, which keeps it for this tab and loads the page again. */
function signIn(form) {
  form.hidden = false;
  main.querySelector("[data-without-script]").hidden = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const value = form.elements.token.value.trim();
    if (!/^[\x21-\x7e]+$/.test(value)) return refused();
    keep(value);
    show(location.href, { remember: false });
  });
}

function refused() {
  forget();
  const message = main.querySelector("[data-refused]");
  if (message) message.hidden = false;
  main.querySelector("#token")?.focus();
}

/** Fetch a page with the token, and put its content in the place of the present one. */
async function show(url, { remember = true, fields } = {}) {
  say("Loading");
  let reply;
  try {
    reply = await load(url, { fields });
  } catch {
    return say("The service does not answer");
  }
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const content = page.getElementById("main");
  if (!content) return say("The service sent no page");
  main.replaceChildren(...content.childNodes);
  document.querySelector("header nav").replaceWith(page.querySelector("header nav"));
  document.title = page.title;
  if (remember) history.pushState(null, "", url);
  shown = pageOf(location.href);
  if (reply.status === 401) refused();
  enhance();
  const place = new URL(url).hash && document.getElementById(new URL(url).hash.slice(1));
  if (place) place.scrollIntoView();
  else if (remember) window.scrollTo(0, 0);
  (place || main).focus({ preventScroll: true });
  say(document.title);
}

const ours = (url) => url.origin === location.origin && (url.pathname + "/").startsWith(base + "/");

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!token() || !link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  // Not link.href, which is an object where the link is in a picture.
  const url = new URL(link.getAttribute("href"), location.href);
  if (!ours(url) || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  show(url.href);
});

document.addEventListener("submit", (event) => {
  if (!token() || event.defaultPrevented) return;
  const url = new URL(event.target.action);
  if (!ours(url)) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(event.target));
  if (event.target.method === "post") return show(url.href, { fields });
  url.search = fields;
  show(url.href);
});

// Only pages that were fetched with a token share a document; a link within a page is no other page.
const pageOf = (href) => href.split("#")[0];
let shown = pageOf(location.href);

window.addEventListener("popstate", () => {
  if (token() && pageOf(location.href) !== shown) show(location.href, { remember: false });
});

document.querySelector("[data-sign-out]").addEventListener("click", () => {
  forget();
  location.assign(base + "/");
});

// --- theme: the system's, unless the reader has chosen one ---

const THEME = "placement-theme";
const THEMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const button = document.querySelector("[data-theme-button]");

function use(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = THEMES[theme];
  document.dispatchEvent(new Event("themechange"));
}

const chosen = () => (localStorage.getItem(THEME) in THEMES ? localStorage.getItem(THEME) : "auto");
button.hidden = false;
button.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  localStorage.setItem(THEME, names[(names.indexOf(chosen()) + 1) % names.length]);
  use(chosen());
});
use(chosen());

if (main.querySelector("[data-sign-in]") && token()) show(location.href, { remember: false });
else enhance();
