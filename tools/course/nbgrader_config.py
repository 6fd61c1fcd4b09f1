"""Settings of the course: nbgrader reads this file where its commands run, in the course folder.

Two things differ from nbgrader's own ways: a cell that never ends or kills its kernel costs its own points only, and feedback shows
no hidden test.
"""

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_output
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.preprocessors import ClearHiddenTests, Execute
from nbgrader.utils import is_grade

STOPPED = (CellTimeoutError, DeadKernelError)


class GuardedExecute(Execute):
    """Runs the cells of a submission one by one; where one stops the kernel, goes on in a new one.

    The new kernel runs again what came before, except for tests, which define nothing, and for cells that stopped a kernel.
    """

    interrupt_on_timeout = False  # a loop may catch the interrupt: a cell out of time loses its kernel
    shutdown_kernel = "immediate"

    def preprocess(self, nb, resources, km=None):
        self.stopped = set()
        return super().preprocess(nb, resources, km)

    def preprocess_cell(self, cell, resources, index):
        try:
            cell, resources = super().preprocess_cell(cell, resources, index)
        except STOPPED as problem:
            self._give_up(index, problem)
            self._start_again(index)
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.name = "stdout"  # nbgrader takes whatever is on stderr, a warning too, for a failure
        return cell, resources

    def _give_up(self, index, problem):
        self.stopped.add(index)
        reason = f"stopped after {self.timeout} s" if isinstance(problem, CellTimeoutError) else "the kernel died"
        failure = new_output("error", ename=type(problem).__name__, evalue=reason, traceback=[f"This cell did not end: {reason}."])
        self.nb.cells[index].outputs = [failure]

    def _start_again(self, end):
        """A new kernel in the state before the cell `end`."""
        while True:
            self._cleanup_kernel()
            self.km = self.create_kernel_manager()
            self.start_new_kernel()
            self.start_new_kernel_client()
            for index, cell in enumerate(self.nb.cells[:end]):
                if index in self.stopped or is_grade(cell):
                    continue
                try:
                    self.execute_cell(cell, index)
                except STOPPED as problem:  # it ended the first time, but may not always
                    self._give_up(index, problem)
                    break
            else:
                return


class HideTests(ClearHiddenTests):
    """Takes hidden tests out of the feedback, and the lines around a failure with them; what a test says in words stays."""

    def preprocess_cell(self, cell, resources, index):
        cell, resources = super().preprocess_cell(cell, resources, index)
        if is_grade(cell):
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    output.traceback = [": ".join(part for part in (output.ename, output.evalue) if part)]
        return cell, resources


def usual(converter, name):
    """The preprocessors that nbgrader itself uses."""
    return list(converter.class_traits()[name].default())


c = get_config()  # noqa: F821 (nbgrader provides it)
c.Autograde.autograde_preprocessors = [
    GuardedExecute if preprocessor is Execute else preprocessor for preprocessor in usual(Autograde, "autograde_preprocessors")
]
c.GenerateFeedback.preprocessors = [HideTests, *usual(GenerateFeedback, "preprocessors")]
c.GuardedExecute.timeout = 30  # seconds for each cell
c.OverwriteCells.add_missing_cells = True  # a test that was deleted is put back
