"""A practitioner's day: a messy csv, vectors, a classifier, and predictions opened in pandas.

The same in English and in Chinese, whose files are GB18030 as many spreadsheets write them.
"""

from __future__ import annotations

import csv
import random
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememe.cli import app

pd = pytest.importorskip("pandas")
pytest.importorskip("torch")

ENGLISH = {
    "billing": (
        "invoice refund charged twice payment card receipt price",
        "Case {0}: my {1} is wrong, the {2} again",
    ),
    "login": (
        "password account locked email reset browser session code",
        'I cannot use my "{1}" or {2} (case {0})',
    ),
    "delivery": (
        "parcel courier late address package tracking box street",
        "Case {0}: the {1} never came;\nwhere is my {2} {0}?",
    ),
}
CHINESE = {
    "账单": ("发票 退款 扣款 付款 银行卡 收据 价格 金额", "工单{0}：我的{1}不对，{2}也有问题"),
    "登录": (
        "密码 账号 锁定 邮箱 重置 浏览器 验证码 手机",
        "我的“{1}”用不了，请看一下{2}，工单{0}",
    ),
    "配送": (
        "包裹 快递 迟到 地址 物流 箱子 签收 司机",
        "工单{0}：{1}一直没到，\n请问{2}在哪里？{0}",
    ),
}
FOOTERS = {"en": "Sent from my phone, please excuse mistakes", "zh": "发自我的手机，请见谅"}
FILES = {"english": (ENGLISH, "utf-8", "en"), "chinese": (CHINESE, "gb18030", "zh")}


def _tickets(name: str, num: int, seed: int) -> list[dict[str, str]]:
    """Messages of several kinds, with all that is wrong in such files."""
    kinds, _, language = FILES[name]
    draw, rows = random.Random(seed), []
    for number in range(num):
        queue = draw.choice([*kinds])
        words, pattern = kinds[queue][0].split(), kinds[queue][1]
        message = pattern.format(draw.randrange(10**5, 10**6), *draw.sample(words, 2))
        message += f".\n{FOOTERS[language]}" if number % 6 == 0 else draw.choice(["", " !!", "  "])
        rows.append({"Nr": f"{number:05}", "message": message, "queue": queue, "note": ""})
        if number % 10 == 3:  # the same message came twice
            rows.append(rows[-1] | {"Nr": f"{number:05}b"})
        if number % 25 == 7:  # nobody wrote anything
            rows.append({"Nr": f"{number:05}c", "message": "", "queue": queue, "note": "=1+1"})
    return rows


def _write(path: Path, rows: list[dict[str, str]], encoding: str) -> None:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("name", FILES)
def test_from_a_messy_table_to_predictions(own_cache, tmp_path, monkeypatch, name) -> None:
    monkeypatch.chdir(tmp_path)
    kinds, encoding, language = FILES[name]
    messy, new = _tickets(name, 240, 1), _tickets(name, 80, 2)
    _write(tmp_path / "tickets.csv", messy, encoding)
    _write(tmp_path / "new.csv", new, encoding)
    roles, quick = "--column text=message --column label=queue", "--workers 1 --seed 1"
    for command in (
        f"sememe clean tickets.csv --column text=message --encoding {encoding} --out clean.csv",
        f"sememe train word2vec clean.csv --column text=message --language {language} --dim 16 "
        f"--min-count 2 --epochs 40 {quick} --out runs/words",
        f"sememe finetune classify runs/words --train clean.csv {roles} --epochs 8 --device cpu "
        f"{quick} --out runs/queues",
        f"sememe train classifier clean.csv {roles} --language {language} --dim 16 --epochs 40 "
        f"--learning-rate 0.5 {quick} --out runs/fast",
        f"sememe predict runs/queues new.csv --encoding {encoding} --out predictions.csv -k -1",
        f"sememe predict runs/fast new.csv --encoding {encoding} --out predictions.parquet",
        f"sememe embed runs/words new.csv --column text=message --encoding {encoding} "
        "--out vectors.parquet",
    ):
        ran = CliRunner().invoke(app, shlex.split(command)[1:])
        assert ran.exit_code == 0, f"{command}\n{ran.stderr or ran.exception!r}"
    clean = pd.read_csv(tmp_path / "clean.csv")
    assert 200 <= len(clean) == clean["message"].nunique() <= 240 < len(messy)
    assert list(clean) == [*messy[0]]
    assert not clean["message"].str.contains(FOOTERS[language]).any()
    # The tables open with every default, and hold the file as it was, row by row.
    given = pd.read_csv(tmp_path / "new.csv", sep=";", encoding=encoding)
    found = pd.read_csv(tmp_path / "predictions.csv")
    pd.testing.assert_frame_equal(found[[*given]], given)
    is_empty = given["message"].isna()
    assert is_empty.sum() == 3 and found.loc[is_empty, "prediction"].isna().all()
    filled = found[~is_empty]
    assert (filled["prediction"] == filled["queue"]).mean() > 0.9
    chances = filled[[f"p({queue})" for queue in sorted(kinds)]]
    assert chances.sum(axis=1).to_numpy() == pytest.approx(1, abs=1e-5)
    assert (chances.max(axis=1) == filled["probability"]).all()
    fast = pd.read_parquet(tmp_path / "predictions.parquet")
    assert fast["Nr"].tolist() == [row["Nr"] for row in new]
    assert (fast["prediction"] == fast["queue"])[~is_empty].mean() > 0.9
    vectors = pd.read_parquet(tmp_path / "vectors.parquet")
    assert len(vectors) == len(given) and {len(row) for row in vectors["vector"]} == {16}
