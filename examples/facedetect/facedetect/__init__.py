"""FaceDetect: fetches pictures and finds the faces in them, with two detectors behind a frontend."""
