// What follows in the browser without reload: the messages of a conversation, and
// the frames of a channel. The server sends HTML that it has escaped; here it is
// put in its place. What can't be followed is said, and made up for.
(() => {
	"use strict";
	const retry = [500, 1000, 2000, 5000];
	const silence = 45000; // the server says something each 15 s
	let current = null;

	class Follower {
		constructor(log) {
			this.log = log;
			this.url = new URL(log.dataset.follow, location.href);
			this.most = Number(log.dataset.most) || 400;
			this.sign = document.getElementById("following");
			this.failures = 0;
			this.open();
		}

		// open asks for what came after the newest that is here.
		open() {
			clearTimeout(this.later);
			this.source?.close();
			const newest = this.log.lastElementChild?.dataset.id;
			if (newest) this.url.searchParams.set("after", newest);
			const source = this.source = new EventSource(this.url);
			const on = (name, f) => source.addEventListener(name, (e) => {
				if (this.source !== source) return;
				this.alive();
				f?.(e);
			});
			on("alive");
			on("message", (e) => this.put(e.data));
			on("text", (e) => this.text(e.data));
			on("reload", () => this.reload());
			// It may have ended as streams do, or the host is gone: only what comes tells.
			source.onerror = () => { if (this.source === source) this.lost(); };
			this.watch();
		}

		alive() {
			this.failures = 0;
			this.out = false;
			this.show("on");
			this.watch();
		}

		watch() {
			clearTimeout(this.quiet);
			this.quiet = setTimeout(() => this.lost(), silence);
		}

		lost() {
			this.source.close();
			clearTimeout(this.quiet);
			clearTimeout(this.later);
			const wait = retry[Math.min(this.failures, retry.length - 1)];
			if (this.failures++ > 0) this.show(this.out ? "out" : "lost");
			else this.doubt = setTimeout(() => this.show("lost"), 1500);
			this.later = setTimeout(() => this.open(), wait);
			this.knock();
		}

		// knock finds out whether we are still logged in. The page stays, with what was
		// typed in it: it goes on by itself when somebody logs in elsewhere.
		async knock() {
			try {
				const answer = await fetch(this.log.dataset.session);
				this.out = answer.status === 401;
				if (this.out) this.show("out");
			} catch { /* the host is gone: go on trying */ }
		}

		show(state) {
			clearTimeout(this.doubt);
			if (this.sign) this.sign.dataset.state = state;
		}

		stop() {
			this.source?.close();
			for (const t of [this.later, this.quiet, this.doubt]) clearTimeout(t);
		}

		// put places what came: where it was, or by its id in the order of ids.
		put(data) {
			const [id, html] = cut(data);
			const fresh = make(html);
			if (!fresh) return;
			const follow = atEnd();
			const old = this.find(id);
			if (old) {
				if (old.isEqualNode(fresh)) return;
				old.replaceWith(fresh);
			} else {
				let before = this.log.lastElementChild;
				while (before && this.behind(before.dataset.id, id)) before = before.previousElementSibling;
				if (before) before.after(fresh);
				else this.log.prepend(fresh);
				document.getElementById("nothing")?.remove();
			}
			document.dispatchEvent(new CustomEvent("console:shown", { detail: fresh }));
			this.bound(follow);
			if (follow) toEnd();
		}

		// text is what there is of an answer that is being written.
		text(data) {
			const [id, html] = cut(data);
			const body = this.find(id)?.querySelector(".said-all");
			const fresh = make(html);
			if (!body || !fresh) return;
			const follow = atEnd();
			body.replaceChildren(fresh);
			if (follow) toEnd();
		}

		// Ids of messages are ordered as text, those of frames as numbers.
		behind(a, b) { return this.log.dataset.by === "number" ? Number(a) > Number(b) : a > b; }

		find(id) { return this.log.querySelector(':scope > [data-id="' + CSS.escape(id) + '"]'); }

		// bound keeps the page small. Who reads what is old keeps it for a while longer.
		bound(follow) {
			const most = follow ? this.most : 3 * this.most;
			while (this.log.children.length > most) this.log.firstElementChild.remove();
		}

		// reload takes all of the page's messages anew, and nothing else of it: what
		// somebody types stays.
		async reload() {
			this.source.close();
			try {
				const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
				if (!answer.ok || answer.redirected) throw new Error("status " + answer.status);
				const page = new DOMParser().parseFromString(await answer.text(), "text/html");
				const log = page.getElementById(this.log.id);
				if (!log) throw new Error("no messages");
				this.log.replaceChildren(...log.children);
				document.dispatchEvent(new CustomEvent("console:shown", { detail: this.log }));
				toEnd();
				this.open();
			} catch {
				this.lost();
			}
		}
	}

	const cut = (data) => {
		const at = data.indexOf("\n");
		return [data.slice(0, at), data.slice(at + 1)];
	};

	const make = (html) => {
		const t = document.createElement("template");
		t.innerHTML = html;
		return t.content.firstElementChild;
	};

	const page = () => document.scrollingElement;
	const atEnd = () => page().scrollHeight - page().scrollTop - window.innerHeight < 120;
	const toEnd = () => { page().scrollTop = page().scrollHeight; };

	const begin = () => {
		const log = document.querySelector("[data-follow]");
		if (current && current.log === log) return;
		current?.stop();
		current = log ? new Follower(log) : null;
		// After this htmx shows the top of a page that took the place of another.
		if (log && !location.hash) requestAnimationFrame(() => { if (current?.log === log) toEnd(); });
	};

	document.addEventListener("DOMContentLoaded", begin);
	document.addEventListener("htmx:afterSettle", begin);
	// A page that comes back out of the browser's memory has no connection any more.
	addEventListener("pageshow", (e) => { if (e.persisted && current) current.open(); });
	addEventListener("online", () => { if (current) current.open(); });
	addEventListener("pagehide", () => current?.source.close());

	// Enter sends, Shift+Enter begins a line; a form is not sent twice.
	document.addEventListener("keydown", (e) => {
		if (e.key !== "Enter" || e.shiftKey || e.isComposing || !e.target.matches(".reply textarea")) return;
		e.preventDefault();
		e.target.form.requestSubmit();
	});
})();
