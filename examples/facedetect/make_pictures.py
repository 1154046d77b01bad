"""Draw the pictures of the example: people, simple enough to need no camera, good enough to be found.

``python make_pictures.py`` writes them to ``pictures``, the same every time. Needs OpenCV.
"""

from __future__ import annotations

import random
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]

FOLDER = Path(__file__).parent / "pictures"
WIDTH, HEIGHT = 640, 480
NUMBERS = range(3450, 3458)
QUALITY = 80


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for number in NUMBERS:
        chance = random.Random(number)
        picture = backdrop(chance)
        people = chance.randint(1, 3)
        for person in range(people):
            x = WIDTH * (2 * person + 1) // (2 * people) + chance.randint(-15, 15)
            draw_person(picture, x, chance.randint(190, 240), chance.randint(70, 85), chance)
        blurred = cv2.GaussianBlur(picture, (5, 5), 0)
        cv2.imwrite(str(FOLDER / f"img_{number}.jpg"), blurred, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])


def backdrop(chance: random.Random) -> Picture:
    """Return an empty scene: a wall that gets darker to the ground."""
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    top = [chance.randint(170, 230) for _ in range(3)]
    for y in range(HEIGHT):
        picture[y] = [int(c * (1 - 0.4 * y / HEIGHT)) for c in top]
    return picture


def draw_person(picture: Picture, x: int, y: int, size: int, chance: random.Random) -> None:
    """Draw a head with its centre at (x, y), ``size`` half as high as it, and shoulders."""
    skin = chance.choice([(150, 185, 230), (120, 160, 215), (165, 195, 235), (100, 140, 195)])
    hair = chance.choice([(20, 30, 45), (15, 15, 20), (40, 60, 90)])
    shirt = tuple(chance.randint(60, 200) for _ in range(3))
    dark = shaded(skin, 0.45)
    wide = int(size * 0.76)

    def oval(dx: float, dy: float, rx: float, ry: float, colour: Colour) -> None:
        centre = (x + int(dx * size), y + int(dy * size))
        cv2.ellipse(picture, centre, (int(rx * size), int(ry * size)), 0, 0, 360, colour, -1, cv2.LINE_AA)

    oval(0, 1.9, 1.35, 0.85, shirt)
    oval(0, 1.05, 0.32, 0.45, shaded(skin, 0.8))
    oval(0, -0.18, 0.86, 0.98, hair)
    cv2.ellipse(picture, (x, y), (wide, size), 0, 0, 360, skin, -1, cv2.LINE_AA)
    oval(0, 0.1, 0.5, 0.55, shaded(skin, 1.08))
    for side in (-1, 1):
        oval(side * 0.33, -0.16, 0.23, 0.15, shaded(skin, 0.62))
        oval(side * 0.33, -0.14, 0.15, 0.075, (235, 235, 235))
        oval(side * 0.33, -0.14, 0.075, 0.08, (30, 25, 25))
        oval(side * 0.34, -0.33, 0.21, 0.05, hair)
        oval(side * 0.42, 0.25, 0.16, 0.14, shaded(skin, 1.12))
    oval(0, 0.08, 0.09, 0.28, shaded(skin, 1.15))
    oval(-0.07, 0.31, 0.05, 0.035, dark)
    oval(0.07, 0.31, 0.05, 0.035, dark)
    oval(0, 0.57, 0.3, 0.085, (70, 70, 150))
    oval(0, 0.56, 0.26, 0.025, (40, 40, 80))
    oval(0, 0.74, 0.2, 0.04, shaded(skin, 0.85))


def shaded(colour: Colour, factor: float) -> Colour:
    """Return a darker or lighter colour."""
    blue, green, red = (min(255, int(c * factor)) for c in colour)
    return blue, green, red


if __name__ == "__main__":
    main()
