# SPDX-License-Identifier: Apache-2.0
"""The pages of `report` and `plan --html` in a real browser."""
import json
import pathlib
import re
import time

import pytest

from conftest import GOLDEN, TRAINED, shardwright, write_model

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src/report/page"
TABS = ("overview", "tensors", "layers", "diagnosis", "proof")


def clean(browser):
    """Asserts that the console was silent and nothing but the page itself was asked for."""
    assert browser.complaints() == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in browser.requests())


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_tab_opens_without_a_complaint(browser, trained, tab, look, language):
    browser.prefer(look)
    browser.open(trained, tab=tab, lang=language)
    assert browser.run("return document.documentElement.dataset.theme") == look
    assert len(browser.run("return document.querySelector('main').textContent")) > 60
    labels = browser.texts("nav.tabs button")
    assert labels == (["Overview", "Tensors", "Layers", "Diagnosis", "Proof"] if language == "en"
                      else ["总览", "张量", "层", "诊断", "证明"])
    clean(browser)


def test_language_and_look_are_switched(browser, trained):
    browser.prefer("light")
    browser.open(trained)
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    browser.click("#theme")
    assert browser.run(background) != light
    browser.click("#language")
    assert browser.texts("main h2")[0] == "字节分布"
    assert browser.run("return document.documentElement.lang") == "zh-CN"
    browser.click("#theme")
    assert browser.run(background) == light
    assert browser.texts("main h2")[0] == "字节分布"
    clean(browser)


def test_the_command_chooses_the_language(browser, place):
    page = place / "chinese.html"
    shardwright("report", GOLDEN / "hf/llama3/hf", "-o", page, "--lang", "zh")
    browser.open(page)
    assert browser.texts("nav.tabs button")[0] == "总览"
    assert browser.run("return document.documentElement.lang") == "zh-CN"


def test_what_is_proven_and_what_is_wrong_is_said_in_both_languages(browser, place):
    damaged = place / "damaged"
    shardwright("convert", GOLDEN / "hf/llama3/hf", damaged, "--to", "torch_dist", "--tp", 2)
    (damaged / "iter_0000000/__1_0.distcp").unlink()
    page = place / "damaged.html"
    shardwright("report", damaged, "--verify", "-o", page, status=1)
    for language, means, proven in (
            ("en", "A file or folder is not there: ", "all 3 layers are there"),
            ("zh", "文件或文件夹不存在: ", "3 层全部存在")):
        browser.open(page, tab="proof", lang=language)
        assert any(text.startswith(means) for text in browser.texts(".finding-text"))
        assert proven in browser.texts("ul.checks li")
        browser.open(page, tab="overview", lang=language)
        assert any(means[:-2] in text for text in browser.texts(".banner.bad"))
    clean(browser)


def test_the_treemap_has_all_bytes_and_is_entered(browser, trained):
    browser.prefer("light")
    browser.open(trained, tab="overview", lang="en")
    whole = browser.texts(".crumbs button")
    assert len(whole) == 1 and whole[0].startswith("everything")
    shown = browser.texts(".treemap .cell")
    for role in ("weights", "master weights", "first moments", "second moments"):
        assert any(text.startswith(role) for text in shown), (role, shown)
    # From the outside inwards, one level a click.
    browser.run("document.querySelector('.treemap .cell').dispatchEvent(new MouseEvent('click'))")
    browser.settle()
    crumbs = browser.texts(".crumbs button")
    assert len(crumbs) == 2
    # Far enough in there is a tensor, whose page opens.
    for _ in range(8):
        if not browser.texts(".treemap .cell"):
            break
        browser.run("const cells = document.querySelectorAll('.treemap .cell');"
                    "cells[cells.length - 1].dispatchEvent(new MouseEvent('click'))")
        browser.settle()
    assert browser.texts("main .detail h2.name") == browser.texts(".row.picked .row-name")
    assert len(browser.texts("main .detail h2.name")) == 1
    clean(browser)


def test_search_finds_words_and_patterns(browser, many):
    browser.open(many, tab="tensors", lang="en")
    assert browser.texts(".count") == ["46,080 of 46,080 tensors"]
    assert len(browser.texts(".finder .row")) < 60
    started = time.monotonic()
    browser.type(".search", "layers.7. 12 gate")
    assert time.monotonic() - started < 5
    found = browser.texts(".finder .row-name")
    assert found[0] == "model.layers.7.mlp.experts.12.gate_proj.weight"
    assert browser.texts(".count") == ["13 of 46,080 tensors"]
    browser.type(".search", "*.3.mlp.experts.255.*")
    assert browser.texts(".count") == ["3 of 46,080 tensors"]
    # A pattern is of the whole name.
    browser.type(".search", "experts.255.*")
    assert browser.texts(".count") == ["0 of 46,080 tensors"]
    browser.type(".search", "nowhere")
    assert browser.texts(".count") == ["0 of 46,080 tensors"]
    assert browser.texts(".finder .row") == []
    clean(browser)


def test_a_long_list_scrolls_to_its_end(browser, many):
    assert many.stat().st_size < 10_000_000
    browser.open(many, tab="tensors", lang="en")
    browser.run("document.querySelector('.list').scrollTop = 1e9")
    browser.settle()
    names = browser.texts(".finder .row-name")
    assert names[-1] == "model.layers.59.mlp.experts.255.up_proj.weight"
    assert len(names) < 60
    for tab in ("overview", "layers"):
        browser.open(many, tab=tab, lang="en")
    clean(browser)


MAP = "return [...document.querySelectorAll('.map .piece')].map((r) => r.getBoundingClientRect())"


def test_the_shard_map_says_who_holds_what_and_zooms(browser, different):
    browser.prefer("light")
    name = "decoder.layers.self_attention.linear_qkv.weight"
    browser.open(different, tab="tensors", tensor=name, lang="en")
    # Four layers, each cut in two.
    assert sorted(browser.texts(".map .labels text")) == ["rank 0"] * 4 + ["rank 1"] * 4
    before = browser.run(MAP)
    assert len(before) == 8
    wheel = ("const map = document.querySelector('.map'), b = map.getBoundingClientRect();"
             "map.dispatchEvent(new WheelEvent('wheel', {deltaY: -400, bubbles: true,"
             "cancelable: true, clientX: b.x + b.width / 2, clientY: b.y + b.height / 2}))")
    browser.run(wheel)
    browser.settle()
    after = browser.run(MAP)
    assert after[0]["width"] > 1.5 * before[0]["width"]
    browser.click("figcaption button")
    assert abs(browser.run(MAP)[0]["width"] - before[0]["width"]) < 1
    clean(browser)


COVERED = """
    const box = (node) => node.getBoundingClientRect();
    const area = box(document.querySelector('.map [fill^="url(#hole"]'));
    const pieces = [...document.querySelectorAll('.map .piece')].map(box);
    return pieces.reduce((sum, piece) => sum + piece.width * piece.height, 0)
      / (area.width * area.height)"""


def test_a_lost_file_is_a_hole(browser, place):
    folder = place / "lost"
    shardwright("convert", GOLDEN / "hf/llama3/hf", folder, "--to", "torch_dist", "--tp", 2)
    name = "decoder.layers.self_attention.linear_qkv.weight"
    page = place / "lost.html"
    shardwright("report", folder, "-o", page)
    browser.open(page, tab="tensors", tensor=name, lang="en")
    assert abs(browser.run(COVERED) - 1) < 0.01
    (folder / "iter_0000000/__1_0.distcp").unlink()
    shardwright("report", folder, "-o", page, "--overwrite", status=1)
    browser.open(page, tab="tensors", tensor=name, lang="en")
    assert abs(browser.run(COVERED) - 0.5) < 0.01
    assert set(browser.texts(".map .labels text")) == {"rank 0"}
    assert name in browser.texts(".detail .bad-text")[0]
    browser.open(page, tab="overview", lang="en")
    assert "__1_0.distcp" in browser.texts(".banner.bad")[0]
    clean(browser)


def test_replicas_are_hatched_and_counted(browser, place):
    page = place / "replicas.html"
    shardwright("report", GOLDEN / "replica/sound", "-o", page)
    document = json.loads(re.search(r'id="document">(.*?)</script>', page.read_text("utf-8"))[1])
    catalog = document["checkpoints"][0]["catalog"]
    copies = [row for row, boxes in enumerate(catalog["box"]) if catalog["boxes"][boxes] == []
              and len(catalog["held"][catalog["holder"][row]]) == 2]
    assert copies, "the golden checkpoint has replicas"
    names = []
    for shared, rest in zip(catalog["names"]["shared"], catalog["names"]["rest"]):
        names.append((names[-1][:shared] if names else "") + rest)
    browser.open(page, tab="tensors", tensor=names[copies[0]], lang="en")
    hatched = """return document.querySelectorAll('.map [fill^="url(#replica"]').length"""
    assert browser.run(hatched) == 1
    assert re.fullmatch(r"rank \d+, rank \d+ ×2", browser.texts(".map .labels text")[0])
    assert "stored 2 times" in browser.texts("figcaption")[0]
    clean(browser)


def test_the_difference_is_where_it_is(browser, different):
    browser.open(different, lang="en")
    assert browser.texts(".banner")[0].startswith("Different: 1 of 27 tensors")
    rows = browser.texts(".list .row-name")
    assert rows == ["decoder.layers.2.mlp.linear_fc2.weight"]
    # Of the strip's cells exactly one is neither grey nor empty.
    colours = browser.run("""
        const canvas = document.querySelector('.heat-canvas');
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let hot = 0;
        for (let i = 0; i < data.length; i += 4) {
          if (data[i + 3] > 250 && data[i] - data[i + 2] > 90) ++hot;
        }
        return hot / (canvas.width * canvas.height)""")
    assert 0.001 < colours < 0.05, colours
    for side in (0, 1):
        browser.open(different, tab="overview", side=side, lang="en")
        formats = browser.texts(".tile-value")
        assert formats[0] == ("torch_dist", "hf")[side]
    clean(browser)


def test_a_plan_is_a_picture(browser, plan):
    for language in ("en", "zh"):
        browser.open(plan, lang=language, tensor="decoder.layers.mlp.linear_fc2.weight")
        assert len(browser.texts(".flow .stream")) == 4
        assert browser.texts(".source h4") == [
            f"model.layers.{layer}.mlp.down_proj.weight" for layer in range(4)]
        clean(browser)


def test_statistics_are_shown(browser, trained):
    browser.open(trained, tab="tensors", tensor="decoder.final_layernorm.weight", lang="en")
    numbers = browser.texts(".figures dd")
    shown = json.loads(shardwright("show", TRAINED, "decoder.final_layernorm.weight", "--json"))
    statistics = shown["statistics"] if "statistics" in shown else shown
    least = statistics.get("min", statistics.get("least"))
    assert abs(float(numbers[0]) - float(least)) < 1e-5 * max(1.0, abs(float(least)))
    assert len(browser.texts(".histogram rect")) >= 1
    clean(browser)


HOSTILE = [
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 2'>",
    "\"><svg onload=window.owned=3>",
    "<!--<script>",
    "javascript:window.owned=4",
    "a.layers.0.\u202e gnp.exe",
    "__proto__.constructor",
    "a.layers.0.__proto__",
    "{{7*7}}${window.owned=5}",
    "layers.99999999999999999999.w",
    "." * 300,
    "名字.layers.1.权重",
]


def test_hostile_names_are_only_names(browser, place):
    folder = write_model(place / "</script><b>&'\"",
                         {name: ("F32", [2, 3], 24) for name in HOSTILE})
    page = place / "hostile.html"
    shardwright("report", folder, folder, "-o", page, "--statistics", "--verify")
    for tab in ("difference", *TABS):
        browser.open(page, tab=tab, lang="en")
        assert browser.run("return window.owned") is None
        assert browser.run("return document.querySelectorAll('main img, main b > *').length") == 0
        clean(browser)
    browser.open(page, tab="tensors", lang="en")
    assert browser.texts(".count") == [f"{len(HOSTILE)} of {len(HOSTILE)} tensors"]
    assert set(browser.texts(".finder .row-name")) == set(HOSTILE)
    # Also where somebody clicks on all of them.
    for row in range(len(HOSTILE)):
        browser.run("document.querySelectorAll('.finder .row')[arguments[0]].click()", row)
    assert browser.run("return window.owned") is None
    clean(browser)


def test_what_is_no_checkpoint_has_a_page_too(browser, place):
    (place / "nothing").mkdir()
    page = place / "nothing.html"
    shardwright("report", place / "nothing", "-o", page, status=1)
    browser.open(page, lang="en")
    assert browser.texts(".banner.bad") != []
    browser.open(page, tab="diagnosis", lang="zh")
    assert "L41" in browser.texts(".findings code")
    clean(browser)


def test_what_cannot_be_read_has_a_page_too(browser, place):
    folder = write_model(place / "cut", {"a.layers.0.w": ("F32", [100], 400)})
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    page = place / "cut.html"
    shardwright("report", folder, "-o", page, "--statistics", "--verify", status=1)
    for tab in TABS:
        browser.open(page, tab=tab, lang="en")
    assert browser.texts(".banner.bad") != []
    clean(browser)


def test_a_narrow_window_scrolls_down_only(browser, trained):
    browser.resize(width=420, height=800)
    for tab in TABS:
        browser.open(trained, tab=tab, lang="en")
        assert browser.run("return document.documentElement.scrollWidth") <= 420, tab
    browser.resize()
    clean(browser)


def test_texts_are_the_same_in_both_languages():
    script = (SOURCES / "texts.js").read_text("utf-8")
    english, chinese = script.split("\n  zh: {")
    entry = re.compile(r'^    "([\w.]+)": "(.*)",$', re.M)
    texts = [dict(entry.findall(half)) for half in (english, chinese)]
    assert list(texts[0]) == list(texts[1]) and len(texts[0]) > 100
    for key, words in texts[0].items():
        names = [sorted(re.findall(r"\{(\w+)\}", language[key])) for language in texts]
        assert names[0] == names[1], key
        said = re.sub(r"\{\w+\}", "", words)
        assert not re.search(r"[a-z]{4}", said) or re.search(r"[\u4e00-\u9fff]", texts[1][key]) or (
            key.startswith("language.")), key
    code = "".join(file.read_text("utf-8") for file in SOURCES.glob("*.js")
                   if file.name != "texts.js")
    for key in texts[0]:
        family = key.rsplit(".", 1)[0] + ".${"
        assert f'"{key}"' in code or f"`{family}" in code, f"nothing says {key}"
    for key in re.findall(r'\btext\("([\w.]+)"', code):
        assert key in texts[0], key
