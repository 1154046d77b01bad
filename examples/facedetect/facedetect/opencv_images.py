"""Pictures for real, with OpenCV."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from facedetect.images import Face

CASCADE = "haarcascade_frontalface_default.xml"
SCALE, NEIGHBOURS = 1.3, 5
RUNS = 3
"""How often a picture is searched."""

Grey = npt.NDArray[np.uint8]

# A service has as many threads as its pool; the library must not add its own.
cv2.setNumThreads(1)


class OpenCVImages:
    """Decodes, searches, draws, and encodes."""

    def __init__(self) -> None:
        self._detector = cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / CASCADE))

    def grey(self, picture: bytes) -> bytes:
        """Return it without colours."""
        return _encoded(_decoded(picture))

    def faces(self, picture: bytes) -> list[Face]:
        """Return where its faces are."""
        grey = _decoded(picture)
        found: list[Face] = []
        for _ in range(RUNS):
            detected = self._detector.detectMultiScale(grey, SCALE, NEIGHBOURS)
            found = [[int(number) for number in face] for face in detected]
        return found

    def marked(self, picture: bytes, faces: list[Face], labels: list[str]) -> bytes:
        """Return it without colours, with a frame around each face, and lines of text."""
        grey = _decoded(picture)
        for left, top, width, height in faces:
            cv2.rectangle(grey, (left, top), (left + width, top + height), 255, 2)
        for line, label in enumerate(labels, 1):
            cv2.putText(grey, label, (10, 25 * line), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 255, 2)
        return _encoded(grey)


def _decoded(picture: bytes) -> Grey:
    grey = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise ValueError("this is not a picture")
    return grey


def _encoded(grey: Grey) -> bytes:
    _, encoded = cv2.imencode(".jpg", grey)
    return encoded.tobytes()
