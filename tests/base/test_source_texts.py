"""The sources that were compiled from text, by their image."""

from culaunch._base.source_texts import keep_source_text, source_lines


def test_a_text_is_found_by_its_image_and_its_name():
    keep_source_text(b"an image\0", "a.cu", "one\ntwo")
    assert source_lines("an image", "/folder/a.cu") == ["one", "two"]
    assert source_lines("an image", "/folder/b.cu") == []
    assert source_lines("another image", "/folder/a.cu") == []
    keep_source_text(b"an image", "a.cu", "three")
    assert source_lines("an image", "a.cu") == ["three"]


def test_the_oldest_text_goes_when_many_have_come():
    for number in range(65):
        keep_source_text(b"image %d" % number, "a.cu", str(number))
    assert source_lines("image 0", "a.cu") == []
    assert source_lines("image 1", "a.cu") == ["1"]
    assert source_lines("image 64", "a.cu") == ["64"]
