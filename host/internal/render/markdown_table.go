package render

import (
	"strings"

	"github.com/rivo/uniseg"
	extast "github.com/yuin/goldmark/extension/ast"
)

// cellWidth is the width up to which a table's columns are aligned. A longer
// cell moves the ones behind it.
const cellWidth = 40

// table writes a table as aligned columns, in basic as code.
func (f *flattener) table(t *extast.Table) {
	rows, widths := f.cells(t)
	lines := make([]string, 0, len(rows)+1)
	for i, row := range rows {
		lines = append(lines, tableLine(row, widths, t.Alignments))
		if i == 0 {
			rules := make([]string, len(widths))
			for j, w := range widths {
				rules[j] = strings.Repeat("─", w)
			}
			lines = append(lines, strings.Join(rules, "  "))
		}
	}
	if f.basic {
		fence := strings.Repeat("`", max(3, 1+longestRun([]byte(strings.Join(lines, "\n")))))
		lines = append(append([]string{fence}, lines...), fence)
	}
	for _, line := range lines {
		f.line([]byte(line), false)
	}
}

// cells are a table's cells as plain text and the widths of its columns.
func (f *flattener) cells(t *extast.Table) (rows [][]string, widths []int) {
	level := f.basic
	f.basic = false
	defer func() { f.basic = level }()
	widths = make([]int, len(t.Alignments))
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		row := make([]string, 0, len(widths))
		for c := r.FirstChild(); c != nil && len(row) < len(widths); c = c.NextSibling() {
			cell := oneLine(f.inline(nil, c))
			widths[len(row)] = max(widths[len(row)], min(cellWidth, uniseg.StringWidth(cell)))
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows, widths
}

func tableLine(row []string, widths []int, align []extast.Alignment) string {
	var b strings.Builder
	for i, cell := range row {
		pad := max(0, widths[i]-uniseg.StringWidth(cell))
		left := 0
		switch align[i] {
		case extast.AlignRight:
			left = pad
		case extast.AlignCenter:
			left = pad / 2
		}
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", pad-left))
	}
	return strings.TrimRight(b.String(), " ")
}
