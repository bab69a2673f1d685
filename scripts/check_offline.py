"""Say which pages of a folder of HTML load anything from a network."""

import sys
from html.parser import HTMLParser
from pathlib import Path

SOURCES = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
NOT_LOADED = {"canonical", "index", "search", "next", "prev", "license", "author"}


class Page(HTMLParser):
    """What a page loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what is loaded from another place than the folder."""
        values = dict(attrs)
        place = values.get(SOURCES.get(tag, "")) or ""
        if place.startswith(("http:", "https:", "//")) and (values.get("rel") or "") not in NOT_LOADED:
            self.foreign.append(place)


def loads(folder: Path) -> list[str]:
    """Return each page that loads something, with what it loads."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}
    return [f"{file}: {place}" for file, page in pages.items() for place in page.foreign]


if __name__ == "__main__":
    found = loads(Path(sys.argv[1]))
    sys.exit("\n".join(found) if found else 0)
