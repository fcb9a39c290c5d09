"""page.py: what holds for every page that a program writes (tcclacct --html, tccl-profile report --html).

It is well-formed, as XML and as HTML; it loads nothing and runs nothing but the one script of ours, which its policy names
by hash; somebody who hears it, or who has no mouse,
finds the way through it."""
import base64
import hashlib
import os
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br"}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pathfind", "draw", "html.js")


class Reader(HTMLParser):
    """Elements as a browser reads them, which is not as XML."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids, self.wrong = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def check_page(text):
    """Raises AssertionError; returns the tree."""
    assert text.startswith("<!DOCTYPE html>\n"), text[:40]
    tree = ElementTree.fromstring(text.split("\n", 1)[1])
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open and not reader.wrong, (reader.open, reader.wrong)
    check_alone(text, reader)
    check_ways(tree, reader)
    return tree


def check_alone(text, reader):
    styles = " ".join(re.findall("<style>(.*?)</style>", text, re.S))
    assert not re.search(r"://|url\(|@import|expression", styles), styles
    scripts = re.findall("<script>(.*?)</script>", text, re.S)
    with open(SCRIPT, encoding="utf-8") as file:
        assert scripts == ["\n" + file.read().split("*/\n", 1)[1]], scripts
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"; script-src 'sha256-{digest}'\"/>" in text and reader.tags.count("script") == 1
    forbidden = {"link", "iframe", "object", "embed", "img", "image", "base", "form", "foreignobject", "use", "audio", "video"}
    assert not forbidden & set(reader.tags), forbidden & set(reader.tags)
    for tag, name, value in reader.attributes:
        assert not name.startswith("on") and name not in ("src", "srcset", "xlink:href", "action", "srcdoc"), (tag, name)
        assert name != "href" or value.startswith("#"), value
        if name not in ("xmlns", "aria-label"):  # a namespace is no address, and what is said loads nothing
            assert "://" not in value and "url(" not in value.replace("url(#", ""), (tag, name, value)
    assert "Content-Security-Policy" in text and "default-src 'none'" in text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


def check_ways(tree, reader):
    assert tree.get("lang") == "en"
    assert ("meta", "content", "width=device-width, initial-scale=1") in reader.attributes
    assert tree.find("head/title").text.strip()
    assert [child.tag for child in tree.find("body")] == ["a", "header", "main", "footer"]
    assert len(reader.ids) == len(set(reader.ids)), reader.ids
    for _, name, value in reader.attributes:
        assert name != "href" or value[1:] in reader.ids, value
    levels = [int(tag[1]) for tag in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1, levels
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:])), levels
    for element in tree.iter():
        tag = element.tag.replace(SVG, "")
        if tag == "svg":
            assert element.get("role") == "img" and (element.get("aria-label") or "").strip(), element.attrib
        elif tag == "th":
            assert element.get("scope") in ("col", "row") and "".join(element.itertext()).strip(), element.attrib
        elif tag == "details":
            assert element[0].tag == "summary", element[0].tag
        elif tag == "figure" and "chart" in (element.get("class") or ""):
            assert element.find(".//table/caption") is not None and element.find("ul") is not None
        if element.get("tabindex") == "0":
            assert element.get("role") == "region" and element.get("aria-label"), element.attrib
