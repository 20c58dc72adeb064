"""Pictures of pages for the documents: PNG files with at most 256 colours, a third of the size of a browser's."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

#: The maximum number of colours in a palette.
_COLOURS = 256
_BEGIN = b"\x89PNG\r\n\x1a\n"
#: A function that returns red, green, blue and opacity of each pixel of a PNG.
_DECODE = """async (png) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, image.width, image.height);
  let text = "";
  for (let at = 0; at < data.length; at += 30000) text += String.fromCharCode(...data.subarray(at, at + 30000));
  return btoa(text);
}"""


def size(png: bytes) -> tuple[int, int]:
    """Return the width and the height of a PNG in pixels."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def small(browser: Any, png: bytes) -> bytes:
    """Return a PNG reduced to its most frequent colours; each other colour is replaced by the nearest of them.

    Args:
        browser: The browser of ``chromium.launch``, which decodes the picture.
        png: An opaque picture.
    """
    width, height = size(png)
    page = browser.new_page()
    pixels = base64.b64decode(page.evaluate(_DECODE, base64.b64encode(png).decode()))
    page.close()
    colours = [pixels[at : at + 3] for at in range(0, len(pixels), 4)]
    by_frequency = [colour for colour, _ in Counter(colours).most_common()]
    palette = by_frequency[:_COLOURS]
    places = {colour: _nearest(colour, palette) for colour in by_frequency}
    rows = (bytes(map(places.__getitem__, colours[at : at + width])) for at in range(0, len(colours), width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = ((b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", data), (b"IEND", b""))
    return _BEGIN + b"".join(chunk for part in parts for chunk in _chunk(*part))


def _nearest(colour: bytes, palette: list[bytes]) -> int:
    return min(range(len(palette)), key=lambda at: sum((a - b) ** 2 for a, b in zip(colour, palette[at], strict=True)))


def _chunk(kind: bytes, content: bytes) -> Iterator[bytes]:
    yield struct.pack(">I", len(content))
    yield kind + content
    yield struct.pack(">I", zlib.crc32(kind + content))
