"""Signals: services tell what happened, receivers do what follows from it."""

import logging

from mup.errors import CommunicationError

logger = logging.getLogger("campus.signals")


class Signal:
    def __init__(self, name):
        self.name = name
        self._receivers = []

    def connect(self, receiver):
        if receiver not in self._receivers:
            self._receivers.append(receiver)
        return receiver

    def send(self, comm, **values):
        return [(receiver, receiver(comm, **values)) for receiver in self._receivers]

    def send_robust(self, comm, **values):
        results = []
        for receiver in self._receivers:
            try:
                results.append((receiver, receiver(comm, **values)))
            except CommunicationError as error:
                logger.warning("%s of %s failed: %s", receiver.__name__, self.name, error)
                results.append((receiver, error))
        return results


def receiver(*signals):
    def decorator(function):
        for signal in signals:
            signal.connect(function)
        return function

    return decorator


logged_in = Signal("logged_in")
login_failed = Signal("login_failed")
role_granted = Signal("role_granted")
application_submitted = Signal("application_submitted")
application_decided = Signal("application_decided")
student_enrolled = Signal("student_enrolled")
student_dropped = Signal("student_dropped")
grade_published = Signal("grade_published")
payment_received = Signal("payment_received")
transcript_issued = Signal("transcript_issued")
