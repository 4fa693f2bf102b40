// A form of the host: fields with labels, and what was answered once it is sent.

import { el, paragraph } from "./text.js";

let forms = 0;

// form shows the form; submit(values, words) is told when the user sends it.
// answered are the values that were sent, or undefined.
export function form(shown, answered, submit) {
	const prefix = "form-" + ++forms + "-";
	const fields = (shown.components ?? []).map((c, i) => field(c, prefix + i, answered));
	const send = el("button", { type: "submit", className: "choice primary" }, shown.submit?.label || "Send");
	const box = el("form", { className: "form", autocomplete: "off" }, ...fields.map((f) => f.node));
	const note = el("p", { className: "note", attrs: { role: "status" } }, answered ? "Sent" : "");
	if (answered) send.setAttribute("aria-disabled", "true");
	box.append(send, note);
	box.addEventListener("submit", (event) => {
		event.preventDefault();
		if (send.getAttribute("aria-disabled") === "true") return;
		const missing = fields.find((f) => f.missing?.());
		if (missing) {
			note.textContent = "Please choose: " + missing.label;
			missing.node.querySelector("input")?.focus();
			return;
		}
		const values = Object.create(null), words = []; // a name may be any
		for (const f of fields) {
			if (!f.name) continue;
			values[f.name] = f.value();
			words.push(f.label + ": " + say(f.value(), f.options));
		}
		send.setAttribute("aria-disabled", "true");
		note.textContent = "Sent";
		if (!submit(values, words.join("\n"))) {
			send.removeAttribute("aria-disabled");
			note.textContent = "Not sent";
		}
	});
	return box;
}

function say(value, options) {
	const label = (v) => options?.find((o) => o.value === v)?.label || v;
	if (typeof value === "boolean") return value ? "yes" : "no";
	return Array.isArray(value) ? value.map(label).join(", ") : label(value);
}

// field is one component: {node} for what only is read, else {node, name, label,
// options, value(), missing()}.
function field(c, id, answered) {
	const label = c.label || c.name;
	const spent = answered !== undefined;
	const start = answered?.[c.name] ?? c.default;
	const plain = { name: c.name, label, options: c.options };
	switch (c.name ? c.type : c.type === "heading" ? "heading" : "text") {
		case "heading":
			return { node: el("h2", { dir: "auto" }, c.text ?? "") };
		case "input":
		case "textarea": {
			const input = el(c.type, { id, required: !!c.required, readOnly: spent, placeholder: c.placeholder ?? "", dir: "auto", maxLength: 20_000 });
			if (c.type === "input") input.type = "text";
			input.value = typeof start === "string" ? start : "";
			return { ...plain, node: labelled(id, label, c.required, input), value: () => input.value };
		}
		case "select": {
			const list = el("select", { id, required: !!c.required, disabled: spent });
			list.append(el("option", { value: "" }, c.placeholder || "Choose"));
			for (const o of c.options ?? []) list.append(el("option", { value: o.value }, o.label || o.value));
			list.value = typeof start === "string" ? start : "";
			return { ...plain, node: labelled(id, label, c.required, list), value: () => list.value };
		}
		case "checkbox": {
			const box = el("input", { id, type: "checkbox", required: !!c.required, disabled: spent, checked: start === true });
			return { ...plain, node: tick(box, label), value: () => box.checked };
		}
		case "radio":
		case "checkbox-group": {
			const many = c.type === "checkbox-group";
			const boxes = (c.options ?? []).map((o, i) => {
				const on = many ? Array.isArray(start) && start.includes(o.value) : start === o.value;
				return el("input", { id: id + "-" + i, name: id, type: many ? "checkbox" : "radio", value: o.value, required: !many && !!c.required, disabled: spent, checked: on });
			});
			const rows = boxes.map((b, i) => tick(b, c.options[i].label || c.options[i].value));
			const chosen = () => boxes.filter((b) => b.checked).map((b) => b.value);
			return {
				...plain, node: el("fieldset", {}, el("legend", { dir: "auto" }, label + (c.required ? " *" : "")), ...rows),
				value: () => (many ? chosen() : chosen()[0] ?? ""), missing: () => many && c.required && chosen().length === 0,
			};
		}
		default:
			return { node: paragraph(c.text ?? c.label ?? "") };
	}
}

function labelled(id, label, required, input) {
	return el("div", { className: "ask" }, el("label", { htmlFor: id, dir: "auto" }, label + (required ? " *" : "")), input);
}

function tick(box, label) {
	return el("div", { className: "tick" }, box, el("label", { htmlFor: box.id, dir: "auto" }, label));
}
