// Markdown into the page: headings, lists, quotes, code, tables, and marks within
// a line. What is none of these stays text, and HTML is text as well. Every span
// has a bound, so that no message takes long.

import { el, link, safeLink, spelt } from "./text.js";

const deepest = 5; // lists in lists, quotes in quotes, marks in marks
const widest = 20; // columns of a table

const fence = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const heading = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const rule = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const quote = /^ {0,3}> ?/;
const bullet = /^( *)([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
const delimiters = /^\|?(?::?-+:?\|)*:?-+:?\|?$/; // without white space

// markdown is a block of it, which finds its own direction.
export function markdown(text) {
	const box = el("div", { className: "text", dir: "auto" });
	return fill(box, blocks(text.replaceAll("\r\n", "\n").split("\n"), 0));
}

// fill appends one by one: there may be more than a call can have arguments.
function fill(e, nodes) {
	for (const n of nodes) e.append(n);
	return e;
}

// blocks makes elements of lines; each reader takes the lines that are its own
// from the front of the rest.
function blocks(lines, depth) {
	const out = [];
	let at = 0;
	while (at < lines.length) {
		if (!lines[at].trim()) {
			at++;
			continue;
		}
		const [node, next] = code(lines, at) ?? title(lines, at) ?? quoted(lines, at, depth) ?? list(lines, at, depth) ?? table(lines, at) ?? paragraph(lines, at);
		out.push(node);
		at = next;
	}
	return out;
}

function code(lines, at) {
	const open = lines[at].match(fence)?.[1];
	if (!open) return;
	let end = at + 1;
	while (end < lines.length && !closes(lines[end], open)) end++;
	return [el("pre", { dir: "ltr" }, el("code", {}, lines.slice(at + 1, end).join("\n"))), end + 1];
}

function closes(line, open) {
	const mark = line.trim();
	return mark.startsWith(open) && [...mark].every((c) => c === open[0]);
}

function title(lines, at) {
	if (rule.test(lines[at])) return [el("hr"), at + 1];
	const m = lines[at].match(heading);
	if (!m) return;
	const words = m[2].trim();
	let end = words.length;
	while (words[end - 1] === "#") end--; // "# title #"
	if (end > 0 && words[end - 1] !== " ") end = words.length;
	return [fill(el("h" + Math.min(m[1].length + 1, 6)), marked(words.slice(0, end).trimEnd())), at + 1]; // the page's title is h1
}

function quoted(lines, at, depth) {
	if (depth >= deepest || !quote.test(lines[at])) return;
	let end = at;
	while (end < lines.length && quote.test(lines[end])) end++;
	return [fill(el("blockquote"), blocks(lines.slice(at, end).map((l) => l.replace(quote, "")), depth + 1)), end];
}

// list takes items of one kind, and what is indented below each.
function list(lines, at, depth) {
	const first = lines[at].match(bullet);
	if (!first || depth >= deepest) return;
	const ordered = /\d/.test(first[2]);
	const box = el(ordered ? "ol" : "ul");
	if (ordered) box.start = parseInt(first[2], 10);
	let end = at;
	while (end < lines.length) {
		const m = lines[end].match(bullet);
		if (!m || m[1].length > first[1].length + 1 || m[1].length < first[1].length || /\d/.test(m[2]) !== ordered || rule.test(lines[end])) break;
		const inner = [m[3]];
		const indent = m[1].length + 2;
		for (end++; end < lines.length; end++) {
			const own = lines[end].length - lines[end].trimStart().length >= indent;
			const blank = !lines[end].trim();
			if (!own && !blank) break;
			if (blank && !(lines[end + 1] ?? "").startsWith(" ".repeat(indent))) break;
			inner.push(lines[end].slice(indent));
		}
		const simple = inner.length === 1;
		box.append(fill(el("li"), simple ? marked(m[3]) : blocks(inner, depth + 1)));
		while (end < lines.length && !lines[end].trim() && bullet.test(lines[end + 1] ?? "")) end++; // a blank line between two items
	}
	return [box, end];
}

function table(lines, at) {
	if (!lines[at].includes("|") || !(lines[at + 1] ?? "").includes("-") || !delimiters.test(lines[at + 1].replaceAll(/[ \t]/g, ""))) return;
	const head = cells(lines[at]);
	if (head.length !== cells(lines[at + 1]).length) return;
	let end = at + 2;
	while (end < lines.length && lines[end].includes("|")) end++;
	const body = lines.slice(at + 2, end).map((l) => el("tr", {}, ...cells(l).slice(0, head.length).map((c) => fill(el("td"), marked(c)))));
	return [el("div", { className: "wide", tabIndex: 0, attrs: { role: "group", "aria-label": "Table" } }, el("table", {},
		el("thead", {}, el("tr", {}, ...head.map((c) => fill(el("th", { scope: "col" }), marked(c))))), fill(el("tbody"), body))), end];
}

function cells(line) {
	return line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|", widest).map((c) => c.trim());
}

// paragraph always takes a line.
function paragraph(lines, at) {
	let end = at + 1;
	while (end < lines.length && lines[end].trim() && ![fence, heading, rule, quote, bullet].some((p) => p.test(lines[end]))) end++;
	return [fill(el("p"), marked(lines.slice(at, end).join("\n"))), end];
}

const marks = new RegExp([
	/\\(?<escaped>[\\`*_{}[\]()#+\-.!|~<>])/,
	/(?<ticks>`{1,3})(?<code>[^`\n]{1,1000})\k<ticks>/,
	/!?\[(?<label>[^[\]\n]{1,500})\]\((?<to>[^()\s]{1,1000}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)(?:[ \t]+"[^"\n]{0,200}")?\)/,
	/<(?<auto>(?:https?:\/\/|mailto:)[^\s<>]{1,1000})>/,
	/\*\*(?=\S)(?<strong>(?:[^*\n]|\*(?!\*)){1,1000}?)(?<=\S)\*\*/,
	/(?<![\p{L}\p{N}_])__(?=\S)(?<bold>[^_\n]{1,1000}?)(?<=\S)__(?![\p{L}\p{N}_])/,
	/~~(?<gone>[^~\n]{1,1000})~~/,
	/\*(?=\S)(?<em>[^*\n]{1,1000}?)(?<=\S)\*/,
	/(?<![\p{L}\p{N}_])_(?=\S)(?<italic>[^_\n]{1,1000}?)(?<=\S)_(?![\p{L}\p{N}_])/,
	/(?<bare>https?:\/\/[^\s<>"]+)/,
].map((p) => p.source).join("|"), "giu");

// marked is what a line holds: text, and elements for what is marked.
function marked(text, depth = 0) {
	const out = [];
	let at = 0;
	for (const m of text.matchAll(marks)) {
		out.push(text.slice(at, m.index), ...piece(m[0], m.groups, depth));
		at = m.index + m[0].length;
	}
	out.push(text.slice(at));
	return out;
}

function piece(whole, g, depth) {
	const inner = (s) => (depth < deepest ? marked(s, depth + 1) : [s]);
	if (g.escaped) return [g.escaped];
	if (g.code) return [el("code", {}, g.code)];
	if (g.label ?? g.auto) {
		const safe = safeLink(g.to ?? g.auto);
		return safe ? [link(safe, ...(g.label ? labelled(g.label) : [g.auto.replace(/^mailto:/i, "")]))] : [whole];
	}
	if (g.strong ?? g.bold) return [el("strong", {}, ...inner(g.strong ?? g.bold))];
	if (g.em ?? g.italic) return [el("em", {}, ...inner(g.em ?? g.italic))];
	if (g.gone) return [el("del", {}, ...inner(g.gone))];
	return spelt(whole);
}

// labelled is the text of a link: marks, but no link in it.
function labelled(text) {
	return marked(text, deepest).map((n) => (n instanceof HTMLAnchorElement ? n.textContent : n));
}
