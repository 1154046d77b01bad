"""The one address that clients need: passes every request on to the service that knows."""

from __future__ import annotations

from mup import EP, MS, Communication
from tms.work import compute, milliseconds


class Cms(MS):
    """The gateway."""

    pool_size = 1
    port = 9100

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.work_ms = milliseconds("MUP_CMS_MS", 3)

    # Who

    @EP("/getAllUsers", name="GetAllUsers", method="GET")
    def get_all_users(self, comm: Communication) -> None:
        """Return all users."""
        compute(self.work_ms)
        comm.respond(comm.call("ums", "/getAllUsers").get())

    @EP("/getExamineeInfo", name="GetExamineeInfo", method="GET")
    def get_examinee_info(self, comm: Communication) -> None:
        """Return one user."""
        compute(self.work_ms)
        comm.respond(comm.call("ums", "/userById", comm.params).get())

    @EP("/isEmailValid", name="IsEmailValid", method="GET")
    def is_email_valid(self, comm: Communication) -> None:
        """Return whose address it is."""
        compute(self.work_ms)
        comm.respond(comm.call("ums", "/emailInUse", comm.params).get())

    # Configurations

    @EP("/getConfigurations", name="GetConfigurations", method="GET")
    def get_configurations(self, comm: Communication) -> None:
        """Return all configurations of exams."""
        compute(self.work_ms)
        comm.respond(comm.call("qms", "/findAllConfigurations").get())

    @EP("/createConfiguration", name="CreateConfiguration", method="POST")
    def create_configuration(self, comm: Communication) -> None:
        """Add a configuration."""
        compute(self.work_ms)
        comm.respond(comm.call("qms", "/createConfiguration", comm.params).get())

    @EP("/getCategoryInfoDtos", name="GetCategoryInfoDtos", method="GET")
    def get_category_infos(self, comm: Communication) -> None:
        """Return all categories of questions."""
        compute(self.work_ms)
        comm.respond(comm.call("qms", "/findAllCategoryInfos").get())

    # Exams

    @EP("/createExam", name="CreateExam", method="POST")
    def create_exam(self, comm: Communication) -> None:
        """Add an exam."""
        compute(self.work_ms)
        comm.respond(comm.call("ems", "/createExam", comm.params).get())

    @EP("/deleteExam", name="DeleteExam", method="DELETE")
    def delete_exam(self, comm: Communication) -> None:
        """Remove an exam."""
        compute(self.work_ms)
        comm.call("ems", "/deleteExam", comm.params).get()
        comm.respond(status=204)

    @EP("/getExams", name="GetExams", method="GET")
    def get_exams(self, comm: Communication) -> None:
        """Return all exams."""
        compute(self.work_ms)
        comm.respond(comm.call("ems", "/listAllExams").get())

    @EP("/getQuestionsForExam", name="GetQuestionsForExam", method="GET")
    def get_questions_for_exam(self, comm: Communication) -> None:
        """Return everything an exam may ask."""
        compute(self.work_ms)
        comm.respond(comm.call("ems", "/listAllQuestionsForExam", comm.params).get())
