// Text into the page. Nothing here or elsewhere makes HTML of a string: every
// character of a message ends in a text node, every address passes safeURL.

// el makes an element. Keys of props are properties, attributes in `attrs`.
export function el(name, props = {}, ...children) {
	const { attrs = {}, ...rest } = props;
	const e = Object.assign(document.createElement(name), rest);
	for (const [key, value] of Object.entries(attrs)) e.setAttribute(key, value);
	e.append(...children);
	return e;
}

// safeURL returns the address if a click on it can run nothing, else "".
// Our own files have a path.
export function safeURL(address) {
	if (/^\/files\/[A-Z2-7]+$/.test(address)) return address;
	if (!/^https?:\/\//i.test(address)) return "";
	try {
		const url = new URL(address);
		return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
	} catch {
		return "";
	}
}

// safeLink also lets mail through, which a click only begins to write.
export function safeLink(address) {
	return /^mailto:[^\s<>"\\]+$/i.test(address) ? address : safeURL(address);
}

// safeImage also lets data through, of types that browsers only draw.
export function safeImage(address) {
	return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(address) ? address : safeURL(address);
}

// link is an <a> that leaves the page and tells nothing about it.
export function link(address, ...children) {
	return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

// spelt is an address in a text as a link, and what follows it.
export function spelt(found) {
	const [head, tail] = bare(found);
	const safe = safeURL(head);
	return safe ? [link(safe, head), tail] : [found];
}

// bare splits "https://example.org/a)." into the address and what follows it.
function bare(found) {
	let end = found.length;
	const opened = found.includes("(");
	while (end > 0 && /[.,;:!?'"»”’)\]}]/.test(found[end - 1])) {
		if (found[end - 1] === ")" && opened) break;
		end--;
	}
	return [found.slice(0, end), found.slice(end)];
}

const addresses = /https?:\/\/[^\s<>"]+/gi;
// Every span has a bound: without one, a message of brackets alone takes minutes.
const marks = /\[([^[\]\n]{1,1000})\]\(([^()\s]{1,2000})\)|\*\*([^*\n]{1,1000})\*\*|\*([^*\s][^*\n]{0,1000})\*|`([^`\n]{1,1000})`|https?:\/\/[^\s<>"]+/gi;

// plain appends text with its addresses as links.
export function plain(target, text) {
	return compose(target, text, addresses);
}

// rich is plain with the little markdown of cards: bold, code and links.
export function rich(target, text) {
	return compose(target, text, marks);
}

function compose(target, text, pattern) {
	let at = 0;
	for (const m of text.matchAll(pattern)) {
		target.append(text.slice(at, m.index), ...piece(m));
		at = m.index + m[0].length;
	}
	target.append(text.slice(at));
	return target;
}

function piece([whole, label, address, strong, bold, code]) {
	if (label !== undefined) {
		const safe = safeLink(address);
		return safe ? [link(safe, label)] : [whole];
	}
	if (strong ?? bold) return [el("strong", {}, strong ?? bold)];
	if (code) return [el("code", {}, code)];
	return spelt(whole);
}

// paragraph is a block of message text; it finds its own direction.
export function paragraph(text, how = plain) {
	return how(el("div", { className: "text", dir: "auto" }), text);
}

// bubble is what is said at once.
export function bubble(kind, ...children) {
	return el("div", { className: ("bubble " + kind).trim() }, ...children);
}
