"""The examples in the comments of headers: indented lines after "Example:".

Lines that include a header, functions and classes stand for themselves, all others are the body of a function. A comment behind
a declaration that is a value and nothing else, or is followed by a colon, says what it gives: `// 6`, `// "cuda:1"`,
`// {1, 2, 3}` for a vector, `// [8, 10]` for a shape or a tensor of that shape.
"""
import dataclasses
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("core", "kernels", "autograd", "layers", "optim", "comm", "data", "train")

# Headers that users of the libraries do not include, and why. All others need an example.
INTERNAL = {
    r"core/(cuda/.*|failed_call|fork|recording|cpu_allocator|memory_file|page_(block|file)|strided_copy|library_file).h": "for the other libraries",
    r"core/(communication_event|cupti/.*|device_times).h": "parts of the timeline",
    r"core/environment.h": "for tests of what reads variables",
    r"core/not_repeatable.h": "between recorded work and what launches it",
    r"core/number_column.h": "a part of to_string()",
    r"core/module_scope.h": "for modules and the tape, which tell profiler ranges whose they are",
    r"core/range_observer.h": "for tests that do something at a named point of the work",
    r"kernels/(?!(conv/conv|gemm/gemm).h).*": "called by autograd/; conv.h and gemm.h are also timed by themselves",
    r"autograd/(node|functions/(binary|broadcast|conv_operands|conv_producer|operand|row_norm|rows|unary)).h": "the tape, and parts of functions",
    r"layers/(file|fusion|container|safetensors/.*).h": "parts of read_safetensors() and of Sequential",
    r"layers/random_draws.h": "for what records work of modules",
    r"optim/(option_checks|copy_to_host).h": "for the optimizers of this folder, and for checks",
    r"comm/(backends|doctor|progress|schedules|transports)/.*": "chosen by name (comm/backends.h), or a part of groups",
    r"comm/cost/(choose_algorithms|predict|network_costs).h": "for the choice of algorithms, and for allreduce_bench",
    r"comm/(host_staging|tensor_collective|ddp/(gradient_bucket|gradient_exchange|hash|steps_under_way)|launch/mpirun).h": "parts of groups, of DDP and of threads.h",
    r"data/batch_source.h": "for data sets of this folder",
    r"data/(batch_upload|loader_checks).h": "parts of Loader",
    r"data/(byte_reader|gzip_reader|directories|decode_image).h": "parts of the readers of data sets",
    r"train/(character_width|character_width_table|console|progress_line|progress_format|stderr_line|terminal).h": "parts of Reporter",
    r"train/recorded_work.h": "parts of StepGraph and EvaluationGraph",
    r"train/(canonical_step|local_failure|smallest_part|tensor_hashes|trainer_checks).h": "parts of Trainer",
    r"train/nan_scan.h": "a part of NanFinder",
    r"train/parse_json.h": "for what reads files of a run",
    r"train/profile/communication_rows.h": "a part of traces",
    r"train/measured_file.h": "for what keeps measurements in files",
    r"train/writers/tensorboard/(wire_message|event_file|histogram|messages|hparams).h": "parts of TensorBoardWriter",
    r"train/(plot/.*|report/(?!report).*).h": "parts of reports (train/report/report.h)",
}

DEFINITION = re.compile(r"(?!for |while |if )((struct|class|template|enum)\b|([\w:<>&*]+ )+\w+\(.*\) \{$)")
DECLARATION = re.compile(r"(?:const )?[\w:]+(?:<.*?>)?[ &*]+(?:const )?(\w+)(?: = |\(|\{)")
CLAIM = re.compile(r"""(.*;) +// (-?\d[\d.]*(?:e[+-]?\d+)?|true|false|"[^"]*"|\[[-\d, ]*\]|\{[-\w., "]*\})(?::.*)?$""")


def needs_example(header):
    """Whether users include this header, so that it must have an example."""
    return not any(re.fullmatch(pattern, header) for pattern in INTERNAL)


@dataclasses.dataclass
class Example:
    header: str
    line: int  # where its code begins
    lines: list

    def parts(self):
        """Its (line number, text)s: includes, definitions, and statements."""
        includes, definitions, statements = [], [], []
        inside = False
        for number, text in enumerate(textwrap.dedent("\n".join(self.lines)).splitlines(), self.line):
            inside = inside or bool(DEFINITION.match(text))  # until a line that begins with a brace
            (includes if text.startswith("#include") else definitions if inside else statements).append((number, text))
            inside = inside and not text.startswith("}")
        return includes, definitions, [line for line in statements if line[1].strip()]

    @property
    def namespace(self):
        return "example_" + re.sub(r"\W", "_", self.header) + f"_{self.line}"

    def source(self, check_claims=False):
        """A namespace of its own, with a function run() if there is anything to run."""
        _, definitions, statements = self.parts()
        library = self.header.split("/")[0].removesuffix(".h")
        library = "core" if library == "tandem" else library
        text = f"namespace tandem::{library} {{}}\n"  # core's own is tandem
        text += f"namespace {self.namespace} {{\nusing namespace tandem;\nusing namespace tandem::{library};\n" + self._numbered(definitions)
        if statements:
            text += "void run() {\n" + self._numbered(self._with_checks(statements) if check_claims else statements) + "}\n"
        return text + f"}}  // namespace {self.namespace}\n"

    def _numbered(self, lines):
        return "".join(f'#line {number} "{self.header}"\n{text}\n' for number, text in lines)

    def _with_checks(self, statements):
        """The statements, with a check behind each whose comment says what it gives."""
        statement = ""
        for number, text in statements:
            statement = f"{statement} {text.strip()}".strip()
            claim = CLAIM.match(text)
            if claim:
                declared = DECLARATION.match(statement)
                if not declared:
                    raise ValueError(f"{self.header}:{number}: only what a declaration gives can be checked")
                text = f'{claim[1]} tandem::test::expect_shown("{declared[1]}", {declared[1]}, R"said({claim[2]})said");'
            if re.search(r"[;{}](\s*//.*)?$", text):
                statement = ""
            yield number, text


def path_of(header):
    """The file that `#include "tandem/HEADER"` means."""
    return ROOT / header if "/" in header else ROOT / "include/tandem" / header


def examples_of(header):
    """The examples of a header, by its path below tandem/."""
    examples, lines = [], None
    for number, line in enumerate(path_of(header).read_text().splitlines(), 1):
        found = re.match(r"\s*///?( .*)?$", line)
        text = (found[1] or "") if found else None
        if lines is not None and text is not None and (text.startswith("   ") or not text.strip()):
            lines.append(text)
        else:
            lines = None
            if text is not None and text.rstrip().endswith("Example:"):
                lines = []
                examples.append(Example(header, number + 1, lines))
    return examples


def headers():
    """All headers of the libraries, and those that include a library's or all of them: core.h, tandem.h."""
    return sorted(str(file.relative_to(ROOT)) for library in LIBRARIES for file in (ROOT / library).rglob("*.h")) + umbrella_headers()


def umbrella_headers():
    return sorted(file.name for file in (ROOT / "include/tandem").glob("*.h"))
