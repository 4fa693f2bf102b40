// Cards, and rows of buttons. press(group, index, value, label) is told when a
// button is; chosen tells which are pressed, by group.

import { el, paragraph, plain, rich } from "./text.js";

// choice is one button. It stays in the tab order when it is spent, so that the
// keyboard does not lose its place.
function choice(button, spent, chosen, press) {
	const style = ["primary", "danger"].includes(button.style) ? button.style : "";
	const e = el("button", { type: "button", className: ("choice " + style).trim(), dir: "auto" }, button.text);
	if (chosen) {
		e.classList.add("chosen");
		e.append(el("span", { className: "hidden" }, " (chosen)"));
	}
	if (spent) e.setAttribute("aria-disabled", "true");
	else e.addEventListener("click", press);
	return e;
}

// rows shows buttons. once: one answer spends them all.
export function rows(list, group, press, chosen, once) {
	let index = 0;
	const picked = chosen[group];
	const box = el("div", { className: "choices", attrs: { role: "group", "aria-label": "Choices" } });
	for (const row of list ?? []) {
		const line = el("div");
		for (const button of row ?? []) {
			const at = index++;
			const spent = picked !== undefined && (once || picked === at);
			line.append(choice(button, spent, picked === at, () => press(group, at, button.value, button.text)));
		}
		box.append(line);
	}
	return box;
}

export function card(shown, press, chosen) {
	const body = el("div", { className: "card-body" });
	(shown.elements ?? []).forEach((element, group) => body.append(part(element, group, press, chosen)));
	const box = el("section", { className: "bubble card", attrs: { "aria-label": shown.header?.title || "Card" } });
	if (shown.header) {
		const known = ["blue", "green", "red", "orange", "yellow", "grey"].includes(shown.header.color);
		box.append(el("div", { className: "card-head" + (known ? " " + shown.header.color : "") },
			el("h2", { dir: "auto" }, shown.header.title ?? "")));
	}
	if (body.childElementCount > 0) box.append(body);
	return box;
}

function part(element, group, press, chosen) {
	switch (element.type) {
		case "markdown":
			return paragraph(element.content ?? "", rich);
		case "divider":
			return el("hr");
		case "actions":
			return rows(element.buttons, group, press, chosen, false);
		case "list_item": {
			const line = el("div", { className: "item" }, paragraph(element.text ?? "", rich));
			const b = element.button;
			if (b) line.append(choice(b, chosen[group] === 0, chosen[group] === 0, () => press(group, 0, b.value, b.text)));
			return line;
		}
		case "select":
			return select(element, group, press, chosen);
		case "note":
			return plain(el("div", { className: "text note", dir: "auto" }), element.text ?? "");
		default:
			return paragraph(element.text ?? element.content ?? "");
	}
}

let selects = 0;

// select sends on its button, not on change: a keyboard passes every option on
// its way to the right one.
function select(element, group, press, chosen) {
	const id = "select-" + ++selects;
	const options = element.options ?? [];
	const label = element.placeholder || "Choose";
	const list = el("select", { id });
	const start = options.findIndex((o) => o.value === element.init_value);
	if (start < 0) list.append(el("option", { value: "", disabled: true }, label));
	options.forEach((o, i) => list.append(el("option", { value: String(i) }, o.text || o.value)));
	list.value = chosen[group] !== undefined ? String(chosen[group]) : start < 0 ? "" : String(start);
	const go = el("button", { type: "button", className: "choice", attrs: { "aria-label": "Choose: " + label } }, "Choose");
	go.addEventListener("click", () => {
		const o = options[Number(list.value)];
		if (list.value !== "" && o) press(group, Number(list.value), (element.callback_prefix ?? "") + o.value, o.text || o.value);
		else list.focus();
	});
	return el("div", { className: "pick" }, el("label", { htmlFor: id, dir: "auto" }, label), el("div", {}, list, go));
}
