// Progressive enhancement of the pages: the theme, sign-in by token, the heat map, the query form, and following events.
// Without a token the browser handles links and forms.  With one, each page is fetched with the token.

import { forget, keep, load, token } from "./session.js";

const base = document.documentElement.dataset.base;
const main = document.getElementById("main");
const say = (text) => (document.querySelector("[data-status]").textContent = text);

/** Start the modules for the content of the page. */
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
  for (const button of main.querySelectorAll("[data-copy]")) addCopy(button);
  const form = main.querySelector("[data-token-form]");
  if (form) signIn(form);
  document.querySelector("[data-sign-out]").hidden = !token();
}

/** Make a button copy the text beside it; browsers allow this only on HTTPS and loopback. */
function addCopy(button) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

/** Load a slow fragment of the page into its placeholder. */
async function complete(element) {
  const reply = await load(element.dataset.findings).catch(() => null);
  if (reply?.ok) element.innerHTML = await reply.text();
}

/** Show the token form; submitting it keeps the token for this tab and reloads the page. */
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

/** Fetch a page with the token and replace the content of the current one. */
async function show(url, { remember = true, fields } = {}) {
  say("Loading");
  let reply;
  try {
    reply = await load(url, { fields });
  } catch {
    return say("The service does not respond");
  }
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const content = page.getElementById("main");
  if (!content) return say("The response is not a page");
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
  // link.href is an object if the link is inside an SVG.
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

// Pages fetched with a token share one document; a link within a page does not change the page.
const pageOf = (href) => href.split("#")[0];
let shown = pageOf(location.href);

window.addEventListener("popstate", () => {
  if (token() && pageOf(location.href) !== shown) show(location.href, { remember: false });
});

document.querySelector("[data-sign-out]").addEventListener("click", () => {
  forget();
  location.assign(base + "/");
});

// --- theme: the system's unless the user has chosen one ---

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
