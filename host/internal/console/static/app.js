// What the console does in the browser beside htmx: times in the reader's zone,
// what is left of a time, copying, focus after a page was changed. Without it
// every page says the same.
(() => {
	"use strict";
	const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
	const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
	const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
	const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

	const localize = (root) => {
		const today = day.format(new Date());
		for (const t of root.querySelectorAll("time[datetime]:not([data-left])")) {
			const at = new Date(t.dateTime);
			if (isNaN(at)) continue;
			const on = day.format(at);
			t.title = full.format(at) + " (" + t.dateTime + ")";
			t.textContent = on === today && !t.hasAttribute("data-date") ? clock.format(at) : on + ", " + clock.format(at);
		}
		for (const t of root.querySelectorAll("[data-clock]")) { // of charts and their tables
			const at = new Date(t.dataset.clock);
			if (!isNaN(at)) t.textContent = minute.format(at);
		}
		for (const t of root.querySelectorAll("[data-zone]")) t.textContent = `Times are in ${minute.resolvedOptions().timeZone}.`;
		countDown(root);
	};

	// <time datetime data-left> shows how long it is until then.
	const countDown = (root) => {
		for (const t of root.querySelectorAll("time[data-left]")) {
			let s = Math.round((new Date(t.dateTime) - Date.now()) / 1000);
			if (isNaN(s)) continue;
			t.title = full.format(new Date(t.dateTime));
			if (s <= 0) {
				t.textContent = "now";
				continue;
			}
			const parts = [];
			for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
				const n = Math.floor(s / size);
				s -= n * size;
				if (n > 0 || parts.length > 0 || unit === "s") parts.push(n + " " + unit);
			}
			t.textContent = "in " + parts.slice(0, 2).join(" ");
		}
	};
	setInterval(() => countDown(document), 1000);

	// Buttons that only scripts can serve are shown by scripts.
	const offer = (root) => {
		for (const b of root.querySelectorAll("button[data-copy][hidden]")) b.hidden = false;
	};

	const copy = async (button) => {
		const source = document.getElementById(button.dataset.copy);
		if (!source) return;
		let done = true;
		try {
			await navigator.clipboard.writeText(source.textContent);
		} catch {
			const range = document.createRange();
			range.selectNodeContents(source);
			const picked = getSelection();
			picked.removeAllRanges();
			picked.addRange(range);
			done = document.execCommand("copy");
		}
		const label = button.querySelector(".label");
		label.textContent = done ? "Copied" : "Press Ctrl+C";
		setTimeout(() => { label.textContent = "Copy"; }, 2500);
	};

	document.addEventListener("click", (e) => {
		const button = e.target.closest("button[data-copy]");
		if (button) copy(button);
		for (const menu of document.querySelectorAll("details.menu[open]")) {
			if (!menu.contains(e.target)) menu.open = false;
		}
	});
	document.addEventListener("keydown", (e) => {
		if (e.key !== "Escape") return;
		for (const menu of document.querySelectorAll("details.menu[open]")) {
			menu.open = false;
			menu.querySelector("summary").focus();
		}
	});

	// A list that grows keeps its newest entries: <ol data-most="500">.
	const bound = (root) => {
		for (const list of document.querySelectorAll("[data-most]")) {
			while (list.children.length > Number(list.dataset.most)) list.firstElementChild.remove();
			const box = list.closest(".log");
			if (box && list.contains(root)) box.scrollTop = box.scrollHeight;
		}
	};

	document.addEventListener("DOMContentLoaded", () => {
		localize(document);
		offer(document);
		document.querySelector("[aria-invalid=true]")?.focus();
		for (const box of document.querySelectorAll(".log")) box.scrollTop = box.scrollHeight;
	});
	document.addEventListener("htmx:load", (e) => {
		const root = e.detail.elt;
		localize(root.parentElement ?? root);
		offer(root);
		bound(root);
	});
	document.addEventListener("console:shown", (e) => localize(e.detail));
	// After a page took the place of another: what is wrong, or its beginning, is read next.
	document.addEventListener("htmx:afterSettle", (e) => {
		if (e.detail.target !== document.body) return;
		(document.querySelector("[aria-invalid=true]") ?? document.getElementById("main"))?.focus({ preventScroll: false });
		for (const box of document.querySelectorAll(".log")) box.scrollTop = box.scrollHeight;
	});
	// The table of the charts stays open when they are shown anew.
	let opened = false;
	document.addEventListener("htmx:beforeSwap", (e) => {
		opened = e.detail.target.querySelector(".chart-table[open]") !== null;
	});
	document.addEventListener("htmx:afterSwap", () => {
		if (opened) document.querySelector(".chart-table")?.setAttribute("open", "");
		opened = false;
	});
	// A request that reached nobody says so.
	document.addEventListener("htmx:sendError", () => {
		const main = document.getElementById("main");
		if (!main || document.getElementById("unreached")) return;
		const p = document.createElement("p");
		p.id = "unreached";
		p.className = "problem warn";
		p.setAttribute("role", "alert");
		p.textContent = "The host does not answer. What is shown here may be old.";
		main.prepend(p);
	});
	document.addEventListener("htmx:afterOnLoad", (e) => {
		document.getElementById("unreached")?.remove();
		if (e.detail.xhr.status !== 401) document.getElementById("logged-out")?.remove();
	});
	// A session that has ended is said in the page, which stays with what is typed in it:
	// at the form that was sent, else at the beginning.
	document.addEventListener("htmx:beforeSwap", (e) => {
		if (e.detail.xhr.status !== 401) return;
		const form = e.detail.requestConfig?.elt.closest("form");
		const old = document.getElementById("logged-out");
		if (old && !form) return;
		const t = document.createElement("template");
		t.innerHTML = e.detail.xhr.responseText;
		const said = t.content.getElementById("logged-out");
		if (!said) return;
		old?.remove();
		(form ?? document.getElementById("main"))?.prepend(said);
		if (form) said.scrollIntoView({ block: "nearest" });
	});
})();
