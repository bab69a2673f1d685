from html.parser import HTMLParser

from graycert.runs.words import ratio_texts, statement
from support.certificates import small_certificates
from support.every_smoothing import any_case, made


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.text, self.tags = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text.append(data)


@any_case
def test_a_notebook_shows_what_is_proved_and_the_table(case):
    c = made(case)
    page = Page(c._repr_html_())
    for sentence in statement(c):
        assert sentence in page.text
    for row in ratio_texts(c)[1]:
        assert set(row) <= set(page.text)
    assert any("NOT A SOUND" in text for text in page.text) == (not c.setup.the_rule.is_sound)


def test_names_are_text():
    hostile = ("<script>alert(1)</script>", "'\"><img src=x>", "שלום")
    page = Page(small_certificates(class_names=hostile)._repr_html_())
    assert page.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert hostile[0] in page.text
