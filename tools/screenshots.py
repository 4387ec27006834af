#!/usr/bin/env python3
"""Screenshots of the report and the playground for the docs; needs Chromium, playwright and the tables.

SVMOSAIC_DATA=/path/to/data python tools/screenshots.py [--out docs/images] [--pages FOLDER]
"""

import argparse
import io
import os
import shutil
import tempfile
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from svmosaic import ClusteredSVR, LinearSVC, LinearSVR, TreeSVC
from svmosaic.explain import region_report

TABLES = Path(os.environ.get("SVMOSAIC_DATA", ".")) / "tables"
COLORS = 256  # of a picture, so that it stays small


def prepared(frame, estimator):
    """An estimator behind the usual steps for numbers and text."""
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    numbers = [name for name in frame if name not in text]
    words = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="(missing)"), OneHotEncoder(handle_unknown="ignore")
    )
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_pipeline(make_column_transformer((scaled, numbers), (words, text), sparse_threshold=0.0), estimator)


def adult():
    """Classes: trained on one file, measured on the other."""
    frame, test = (pd.read_csv(TABLES / f"adult_{part}.csv") for part in ("train", "test"))
    y, y_test = frame.pop("income"), test.pop("income")
    settings = {"calibration": "temperature", "random_state": 0}
    model = prepared(frame, TreeSVC(1, max_leaves=10, **settings)).fit(frame, y)
    linear = prepared(frame, LinearSVC(**settings)).fit(frame, y)
    return region_report(model, test, y_test, baseline=linear, seen=False, title="Income over 50,000 (adult)")


def beijing():
    """Numbers: four fifths of the rows for training."""
    frame = pd.read_csv(TABLES / "beijing_pm25.csv").dropna(subset=["pm25"]).drop(columns="No")
    frame, test = train_test_split(frame, test_size=0.2, random_state=0)
    frame, test = frame.reset_index(drop=True), test.reset_index(drop=True)
    y, y_test = frame.pop("pm25"), test.pop("pm25")
    model = prepared(frame, ClusteredSVR(8, pieces=16, C=0.1, tol=1e-3, random_state=0)).fit(frame, y)
    linear = prepared(frame, LinearSVR(random_state=0)).fit(frame, y)
    return region_report(model, test, y_test, baseline=linear, seen=False, title="Fine dust in Beijing (pm25)")


REPORTS = {"report_adult": adult, "report_beijing": beijing}
PLAYGROUND = Path(__file__).parent.parent / "docs" / "playground" / "playground.html"


def small(png):
    """The picture with few colors."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLORS).save(out, "PNG", optimize=True)
    return out.getvalue()


def main():
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "images")
    parser.add_argument("--pages", type=Path, help="keep the pages in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = {"playground": PLAYGROUND}
        for name, make in REPORTS.items():
            pages[name] = (options.pages or Path(folder)) / f"{name}.html"
            pages[name].write_text(make(), encoding="utf-8")
        for name, path in pages.items():
            page = browser.new_page(viewport={"width": 1200, "height": 780}, reduced_motion="reduce")
            page.goto(path.as_uri())
            picture = small(page.screenshot(full_page=name != "playground"))
            (options.out / f"{name}.png").write_bytes(picture)
            print(f"{name}: page {path.stat().st_size / 1e3:.0f} kB, picture {len(picture) / 1e3:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
