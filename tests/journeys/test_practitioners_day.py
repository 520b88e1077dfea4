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
        "My {} is wrong, the {} again",
    ),
    "login": (
        "password account locked email reset browser session code",
        'I cannot use my "{}" or {}',
    ),
    "delivery": (
        "parcel courier late address package tracking box street",
        "The {} never came;\nwhere is my {}?",
    ),
}
CHINESE = {
    "账单": ("发票 退款 扣款 付款 银行卡 收据 价格 金额", "我的{}不对，{}也有问题"),
    "登录": ("密码 账号 锁定 邮箱 重置 浏览器 验证码 手机", "我的“{}”用不了，请看一下{}"),
    "配送": ("包裹 快递 迟到 地址 物流 箱子 签收 司机", "{}一直没到，\n请问{}在哪里？"),
}
FILES = {"english": (ENGLISH, "utf-8", "en"), "chinese": (CHINESE, "gb18030", "zh")}


def _tickets(kinds: dict[str, tuple[str, str]], num: int, seed: int) -> list[dict[str, str]]:
    """Messages of several kinds, with all that is wrong in such files."""
    draw, rows = random.Random(seed), []
    for number in range(num):
        queue = draw.choice([*kinds])
        words, pattern = kinds[queue][0].split(), kinds[queue][1]
        message = pattern.format(*draw.sample(words, 2)) + draw.choice(["", " !!", "。", "  "])
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
    train, new = _tickets(kinds, 240, 1), _tickets(kinds, 80, 2)
    _write(tmp_path / "tickets.csv", [row for row in train if row["message"]], encoding)
    _write(tmp_path / "new.csv", new, encoding)
    roles = "--column text=message --column label=queue"
    quick = "--workers 1 --seed 1"
    for command in (
        f"sememe train word2vec tickets.csv --column text=message --encoding {encoding} "
        f"--language {language} --dim 16 --min-count 2 --epochs 40 {quick} --out runs/words",
        f"sememe finetune classify runs/words --train tickets.csv {roles} --encoding {encoding} "
        f"--epochs 8 --device cpu {quick} --out runs/queues",
        f"sememe train classifier tickets.csv {roles} --encoding {encoding} --language {language} "
        f"--dim 16 --epochs 40 --learning-rate 0.5 {quick} --out runs/fast",
        "sememe predict runs/queues new.csv --out predictions.csv -k -1",
        "sememe predict runs/fast new.csv --out predictions.parquet",
        f"sememe embed runs/words new.csv --column text=message --encoding {encoding} "
        "--out vectors.parquet",
    ):
        ran = CliRunner().invoke(app, shlex.split(command)[1:])
        assert ran.exit_code == 0, f"{command}\n{ran.stderr or ran.exception!r}"
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
