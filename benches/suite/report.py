"""Tables for people, JSON for machines."""

import json


class Report:
    """The results of one part."""

    def __init__(self, part, title):
        self.part, self.title = part, title
        self.tables, self.targets, self.numbers, self.notes, self.plots = [], [], {}, [], []

    def table(self, caption, head, rows):
        self.tables.append((caption, head, rows))

    def target(self, number, what, value, limit, *, at_least=False, unit=""):
        """One of the targets: met or not."""
        met = value >= limit if at_least else value <= limit
        bound = ("at least " if at_least else "at most ") + number_text(limit) + unit
        self.targets.append(
            {"number": number, "what": what, "value": value, "unit": unit, "limit": bound, "met": bool(met)}
        )

    def note(self, text):
        self.notes.append(text)

    def markdown(self):
        out = [f"## {self.title}", ""]
        for caption, head, rows in self.tables:
            out += [caption, ""] if caption else []
            out += markdown_table(head, rows)
            out.append("")
        out += [f"- {note}" for note in self.notes] + ([""] if self.notes else [])
        return "\n".join(out)

    def json(self):
        tables = [
            {"caption": caption, "columns": head, "rows": [[str(cell) for cell in row] for row in rows]}
            for caption, head, rows in self.tables
        ]
        return {
            "title": self.title, "targets": self.targets, "tables": tables, "numbers": self.numbers, "notes": self.notes,
        }


def markdown_table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def target_table(targets):
    rows = [
        [one["number"], one["what"], one["limit"], number_text(one["value"]) + one["unit"], "met" if one["met"] else "**not met**"]
        for one in sorted(targets, key=lambda one: (one["number"], one["what"]))
    ]
    return "\n".join(markdown_table(["", "target", "limit", "measured", ""], rows))


def number_text(value):
    if isinstance(value, int) or float(value).is_integer() and abs(value) >= 100:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def merge(file, machine, reports):
    """Writes the results, next to those of parts that did not run this time."""
    try:
        everything = json.loads(file.read_text())
    except (OSError, ValueError):
        everything = {"parts": {}}
    for report in reports:
        everything["parts"][report.part] = {"machine": machine, **report.json()}
    file.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
    return everything
