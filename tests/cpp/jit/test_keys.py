"""Both languages compute the same keys, so one cache serves both."""

from __future__ import annotations

import pytest
from jit_requests import SOURCES, AskedKey, KeyCache, key_here, link_here, random_request

import culaunch as cl

pytestmark = pytest.mark.needs("nvrtc")


def test_both_languages_come_to_the_same_keys(ask, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requests = []
    expected = []
    for number in range(400):
        request = random_request(number, folders)
        try:
            expected.append(key_here(request, tmp_path / "keys"))
        except ValueError:
            continue  # two that contradict each other, such as an option that a keyword is for
        requests.append(request)
    assert len(requests) > 300
    assert ask("key", *requests) == expected
    assert len(set(expected)) > 300


def test_both_languages_link_under_the_same_keys(ask, parts, tmp_path):
    lto, plain = parts(lto=True), parts(relocatable=True)
    several = parts(lto=True, arch=["sm_80", "sm_90"])
    ptx = tmp_path / "k.ptx"
    cl.compile(SOURCES[0], arch="compute_80", cache=False).save(ptx)
    requests = [
        {"image": lto, "arch": ["sm_90"]},
        {"input": lto, "arch": ["sm_90"]},
        {"input": several, "arch": ["sm_80", "sm_90"], "line_info": True},
        {"input": lto, "arch": ["compute_90"]},
        {"input": plain, "arch": ["sm_90"], "maxrregcount": 32},
        {"input": plain, "arch": ["sm_90"], "extra_option": ["-maxrregcount=32"]},
        {"image": plain[:1], "input": plain[1:], "arch": ["sm_90"], "debug": True},
        {"input": [str(ptx)], "arch": ["sm_90a", "sm_80"], "extra_option": ["-verbose", "-O1"]},
    ]
    expected = []
    for request in requests:
        with pytest.raises(AskedKey) as asked:
            link_here(request, KeyCache(tmp_path / "keys"))
        expected.append(asked.value.args[0])
    assert ask("link_key", *requests) == expected
    # An image and its file are one, a field and its option too; what else differs has its own key.
    assert len(set(expected)) == len(requests) - 2
