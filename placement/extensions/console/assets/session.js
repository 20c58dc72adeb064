// The token of this tab: kept in sessionStorage, sent in a header, never in a URL.

const KEY = "placement-token";

export const token = () => sessionStorage.getItem(KEY);
export const keep = (value) => sessionStorage.setItem(KEY, value);
export const forget = () => sessionStorage.removeItem(KEY);

/** Fetch a URL of this service with the token, if any; fields are sent by POST. */
export function load(url, { accept = "text/html", fields } = {}) {
  const headers = { Accept: accept };
  if (token()) headers["X-Auth-Token"] = token();
  return fetch(url, { method: fields ? "POST" : "GET", body: fields, headers, credentials: "same-origin", cache: "no-store" });
}
