/* What HTML cannot do: keys, search while one types, and news without a reload. Every page works without this. */
"use strict";

(() => {
  const one = (what, where = document) => where.querySelector(what);
  const all = (what) => [...document.querySelectorAll(what)];
  const say = (words) => { const place = one("#said"); if (place) place.textContent = words; };

  /* On a narrow screen the menu is one line: the page that is shown is in sight. */
  const current = one(".menu [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });

  /* News: the part of the page that shows the home is fetched again; never while a person fills in a form in it. */
  let asked = 0;
  const part = () => (one("#results") ? "#results" : "#live");
  const typing = () => {
    const live = one(part()), at = document.activeElement;
    const open = live && one("details[open] form, dialog[open]", live);
    const changed = live && [...live.querySelectorAll("textarea, input:not([type=hidden]), select")].some((field) =>
      field.type === "checkbox" ? field.checked !== field.defaultChecked
        : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected)
        : field.value !== field.defaultValue);
    return Boolean(open || changed || (live && live.contains(at) && at.matches("textarea, input, select")));
  };
  /* Each page has a mark of its own in its forms, so that two clicks are one action. */
  const bare = (place) => place.innerHTML.replaceAll(/name="once" value="[^"]*"/g, "");
  const show = async (address, words, always = false) => {
    const mine = ++asked;
    let answer;
    try { answer = await fetch(address, { headers: { accept: "text/html" } }); } catch { return false; }
    if (!answer.ok || mine !== asked || (!always && typing())) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const old = one(part()), fresh = one(part(), page) || one("#live", page);
    if (mine !== asked || (!always && typing()) || !old || !fresh) return false;
    if (bare(old) === bare(fresh)) return true;
    const known = new Set(all("[data-row]").map((row) => row.dataset.row));
    const focused = document.activeElement && document.activeElement.id;
    const row = one(".line.on");
    const opened = new Set(all("[data-row] > details[open]").map((details) => details.parentElement.dataset.row));
    old.replaceWith(document.adoptNode(fresh));
    for (const line of all("[data-row]")) if (!known.has(line.dataset.row)) line.classList.add("fresh");
    for (const details of all("[data-row] > details")) if (opened.has(details.parentElement.dataset.row)) details.open = true;
    if (row) all("[data-row]").filter((line) => line.dataset.row === row.dataset.row).forEach((line) => line.classList.add("on"));
    if (focused && document.activeElement === document.body) { const back = document.getElementById(focused); if (back) back.focus(); }
    say(words);
    return true;
  };
  let waiting = 0, missed = false;
  const refresh = () => { clearTimeout(waiting); waiting = setTimeout(async () => { missed = !(await show(location.href, "The page was updated.")); }, 150); };
  /* A hidden page listens to nothing: browsers allow few open connections to one server. */
  let news = null;
  const listen = () => {
    if (document.hidden && news) { news.close(); news = null; }
    if (document.hidden || news) return;
    news = new EventSource("/live");
    news.addEventListener("change", refresh);
  };
  if (window.EventSource && one("[data-live]")) {
    listen();
    document.addEventListener("visibilitychange", () => { listen(); if (news) refresh(); });
    addEventListener("pagehide", () => { if (news) news.close(); news = null; });
    addEventListener("pageshow", listen);
    document.addEventListener("focusout", () => { if (missed) refresh(); });
  }

  /* Search while one types. */
  const field = one("#q");
  if (field) {
    let typed = 0;
    const look = () => {
      clearTimeout(typed);
      typed = setTimeout(() => {
        const address = "/search?" + new URLSearchParams([...new FormData(field.form)].filter(([, value]) => value !== ""));
        history.replaceState(null, "", address);
        show(address, "", true).then(() => { const total = one("#found"); if (total) say(total.textContent); });
      }, 180);
    };
    field.form.addEventListener("input", look);
    field.form.addEventListener("change", look);
  }

  /* Keys. Single letters act only outside fields. */
  const step = (by) => {
    const rows = all("[data-row]");
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.classList.contains("on"));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))];
    rows.forEach((row) => row.classList.toggle("on", row === next));
    (one("a", next) || next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const keys = {
    "/": () => { const find = one("#q") || one("#find"); find.focus(); find.select(); },
    "?": () => one("#keys").showModal(),
    j: () => step(1),
    k: () => step(-1),
    u: () => { const undo = one(".notice form"); if (undo) undo.requestSubmit(); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target;
    if (at.matches("input, textarea, select")) { if (event.key === "Escape") at.blur(); return; }
    if (one("dialog[open]")) return;
    const link = /^[0-9]$/.test(event.key) ? all(".menu a")[(Number(event.key) + 9) % 10] : null;
    if (link) { event.preventDefault(); link.click(); return; }
    if (Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
  });
})();
