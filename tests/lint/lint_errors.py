# SPDX-License-Identifier: MIT
"""Each status that a header says a function answers is provoked by some test.

Which those are: every "E..." word after "Errors:" (or in the text) of the comment that documents
the function; of a comment for several functions, each status counts for the function that it
is said of, or else for any one of them.  Provoked means that a test's statement, or a row of a
table, holds both the function's name and ERRAND_E...; a row of tests/hostile/calls_*.c stands
for the statuses that every function has (EINVAL for NULL, ETHREAD, EFORKED, ECLOSED).

And each public function has a row there, or a reason below why not.

And the texts of misuse name a public function: __func__, and ERRAND_REQUIRE_ARG, which tells it,
stand in those alone."""
import collections
import re
import tree

NAME = re.compile(r"\b(errand_\w+)\s*\(")
STATUS = re.compile(r"\bE[A-Z]{3,}\b")
SAID = re.compile(r"\b(errand_[a-z_0-9]+)")
FOR_ALL = {"EINVAL", "ETHREAD", "EFORKED", "ECLOSED"}
# Without a row: nothing that could be misused, or a test of its own says how.
EXEMPT = {
    "errand_status_name": "takes any number", "errand_status_text": "takes any number",
    "errand_code_name": "takes any number", "errand_code_text": "takes any number",
    "errand_outcome_name": "takes any number", "errand_reason_name": "takes any number", "errand_version": "takes nothing",
    "errand_features": "takes nothing", "errand_misuse_hook": "NULL takes it away",
    "errand_checkpoint_read": "of no runtime; tests/runtime/checkpoint_test.c",
    "errand_checkpoint_load": "of no runtime; tests/runtime/checkpoint_test.c",
    "errand_checkpoint_save": "0 for NULL", "errand_checkpoint_abandon": "NULL-safe",
    "errand_deadline_in": "takes any number", "errand_runtime_now": "0 for NULL",
    "errand_runtime_id": "0 for NULL", "errand_prepared_kind": "0 for NULL",
    "errand_panic": "ends the job", "errand_payload_drop": "NULL-safe",
    "errand_interrupt": "a signal handler's; NULL-safe", "errand_inbox_abandon": "NULL-safe",
    "errand_executor_abandon": "NULL-safe", "errand_spec_abandon": "NULL-safe",
    "errand_waker_hold": "NULL-safe", "errand_waker_wake": "NULL-safe",
    "errand_waker_abandon": "NULL-safe", "errand_job_waker": "NULL for NULL",
    "errand_task_self": "zero for NULL", "errand_task_runtime": "NULL for NULL",
    "errand_task_cancelled": "NONE for NULL",
    "errand_dispatch_view_read": "false for a dispatch that is used up",
    "errand_dispatch_run": "false for a dispatch that is used up",
    "errand_dispatch_drop": "false for a dispatch that is used up",
    "errand_operation_code_name": "takes any number",
    "errand_file_kind_name": "takes any number",
    "errand_step_name": "takes any number", "errand_log_close": "NULL-safe",
    "errand_log_header_of": "NULL for NULL", "errand_replay_header_of": "NULL for NULL",
    "errand_site_name": "takes any number", "errand_choices_print": "0 for NULL",
    "errand_tape_abandon": "NULL-safe", "errand_enumerator_abandon": "NULL-safe",
    "errand_tape_count": "0 for NULL", "errand_tape_at": "false for NULL",
    "errand_tape_unused": "false for NULL", "errand_tape_changed": "false for NULL",
    "errand_inbox_closed": "true for NULL", "errand_ffi_code_name": "takes any number",
    "errand_ffi_library_create": "of no runtime; tests/foreign",
    "errand_ffi_library_load": "of no runtime; tests/foreign",
    "errand_ffi_describe": "of no runtime; tests/foreign",
    "errand_ffi_describe_as": "of no runtime; tests/foreign",
    "errand_ffi_describe_named": "of no runtime; tests/foreign",
    "errand_ffi_layout": "of no runtime; tests/foreign",
    "errand_ffi_buffer_create": "of no runtime; tests/foreign",
    "errand_ffi_buffer_resize": "of no runtime; tests/foreign",
    "errand_ffi_callback_destroy": "of no runtime; tests/foreign",
    "errand_ffi_callback_asker": "zero for NULL",
    "errand_ffi_callback_address": "NULL for NULL", "errand_ffi_buffer_data": "NULL for NULL",
    "errand_ffi_buffer_size": "0 for NULL", "errand_ffi_buffer_pinned": "false for NULL",
    "errand_ffi_buffer_shared": "false for NULL", "errand_ffi_buffer_pin": "NULL-safe",
    "errand_ffi_buffer_unpin": "NULL-safe",
    "errand_sandbox_buffer": "of a sandbox; tests/workers/sandbox/pool_region_test.c",
    "errand_ffi_buffer_abandon": "NULL-safe", "errand_ffi_library_abandon": "NULL-safe",
    "errand_ffi_function_abandon": "NULL-safe", "errand_ffi_function_text": "empty for NULL",
    "errand_ffi_function_signature": "NULL for NULL",
    "errand_sandbox_create": "makes processes; tests/workers/sandbox/pool_create_test.c",
    "errand_sandbox_check": "of no runtime; tests/workers/sandbox/pool_create_test.c",
    "errand_promises_parse": "of no runtime; tests/workers/sandbox/pool_create_test.c",
    "errand_layers_parse": "of no runtime; tests/workers/sandbox/pool_create_test.c",
    "errand_sandbox_outcome_read": "of no runtime; tests/workers/sandbox/pool_create_test.c",
    "errand_sandbox_call_name": "of no runtime; tests/workers/sandbox/inside_filter_test.c",
    "errand_sandbox_snapshot_read": "of a sandbox; tests/workers/sandbox/pool_create_test.c",
    "errand_tape_rewind": "NULL-safe", "errand_tape_print": "0 for NULL",
    "errand_enumerator_next": "false for NULL", "errand_enumerator_runs": "0 for NULL",
    "errand_enumerator_complete": "false for NULL",
    "errand_http_origin": "of no runtime; tests/operations/net/http_test.c",
    "errand_endpoint_print": "0 for NULL", "errand_endpoint_of": "none for NULL",
    "errand_stream_hold": "NULL-safe",
    "errand_stream_abandon": "NULL-safe",
    "errand_listener_hold": "NULL-safe",
    "errand_listener_abandon": "NULL-safe",
    "errand_datagram_hold": "NULL-safe",
    "errand_datagram_abandon": "NULL-safe",
    "errand_file_hold": "NULL-safe",
    "errand_file_abandon": "NULL-safe",
    "errand_process_hold": "NULL-safe",
    "errand_process_abandon": "NULL-safe",
    "errand_source_hold": "NULL-safe",
    "errand_source_abandon": "NULL-safe",
    "errand_stream_close": "NULL-safe",
    "errand_listener_close": "NULL-safe",
    "errand_datagram_close": "NULL-safe",
    "errand_source_close": "NULL-safe",
    "errand_source_buffered": "NULL-safe",
    "errand_stream_local": "none for NULL",
    "errand_stream_peer": "none for NULL",
    "errand_listener_local": "none for NULL",
    "errand_datagram_local": "none for NULL",
    "errand_stream_fd": "none for NULL",
    "errand_listener_fd": "none for NULL",
    "errand_datagram_fd": "none for NULL",
    "errand_file_fd": "none for NULL", "errand_file_is_seekable": "false for NULL",
    "errand_http_upload_hold": "NULL-safe", "errand_http_upload_abandon": "NULL-safe",
    "errand_http_upload_left": "0 for NULL",
    "errand_http_is_method": "false for NULL",
    "errand_http_repeats": "reads its arguments; NULL is a method",
    "errand_process_id": "none for NULL",
    "errand_endpoint_parse": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_stream_adopt": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_stream_set": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_file_adopt": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_source_accept": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_source_receive": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_source_signals": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_source_next": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_source_output": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_process_end_input": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_process_signal": "of no runtime; tests/operations/net/refusals_test.c",
    "errand_reactor_backend": "NULL asks for this process",
    "errand_io_start": "inside a job on a reactor; tests/workers/reactor/refusals_test.c",
    "errand_io_cancel": "inside a job on a reactor; tests/workers/reactor/refusals_test.c",
    "errand_io_consume": "inside a job on a reactor; tests/workers/reactor/refusals_test.c",
    "errand_job_helpers": "NULL on no reactor; tests/workers/reactor/refusals_test.c",
    "errand_helpers_call": "calls; tests/workers/reactor/calls_test.c",
    "errand_helpers_abandon": "NULL-safe; tests/workers/reactor/calls_test.c",
}
# Said in a function's comment of something else, or out of reach.
NOT_SHOWN = {
    ("errand_task_cancel", "ECANCELLED"): "what its waits answer",
    ("errand_blocking_create", "ENOTHREAD"): "what submit answers",
    ("errand_io_cancel", "ECANCELED"): "a result, no status",
    ("errand_runtime_create", "EEXHAUSTED"): "2^64 runtimes of one process",
    ("errand_stream_adopt", "ESYSTEM"): "fcntl of a socket that is one does not fail",
    ("errand_source_signals", "ESYSTEM"): "no descriptor is left",
}
PURE = re.compile(r"errand_(\w+_digest|testing_(pause|refuse_threads|fail_allocation|"
                  r"live_bytes|idle_clock)|spec_\w+)$")


def documented(root):
    """{function: statuses}, and [(functions, status)] where any one of them will do."""
    sure, any_of = collections.defaultdict(set), []
    where = {}
    for path in tree.c_files(root, "include"):
        text = tree.read(root, path)
        bare = tree.code(text)
        heads = [m for m in tree.TOKEN.finditer(text) if m.lastgroup == "block"
                 and not text[text.rfind("\n", 0, m.start()) + 1:m.start()].strip()]
        runs = collections.defaultdict(list)
        for match in re.finditer(r"\bERRAND_API\b[^;{]*[;{]", bare):
            if "#" in bare[bare.rfind("\n", 0, match.start()) + 1:match.start()]:
                continue
            name = NAME.search(match.group())
            above = [i for i, head in enumerate(heads) if head.end() <= match.start()]
            if name:
                where[name.group(1)] = (path, bare.count("\n", 0, match.start()) + 1)
                runs[above[-1]].append(name.group(1))
        for index, names in runs.items():
            words = heads[index].group()
            answering = [n for n in names
                         if re.search(r"errand_status\s+%s\s*\(" % n, bare)]
            if len(answering) == 1:
                sure[answering[0]] |= set(STATUS.findall(words))
                continue
            current = None
            for part in re.split(r"(\berrand_[a-z_0-9]+)|(Errors\b)", words):
                if part is None:
                    continue
                if part in answering:
                    current = part
                elif part == "Errors" or SAID.fullmatch(part or ""):
                    current = None if part == "Errors" else current
                else:
                    for status in STATUS.findall(part):
                        if current:
                            sure[current].add(status)
                        elif answering:
                            any_of.append((tuple(answering), status))
    return sure, any_of, where


def provoked(root):
    """{(function, status)} that stand together in a test's statement or row."""
    pairs, rows = set(), set()
    for path in tree.c_files(root, "tests"):
        # "status, ERRAND_ENOMEM); /* of errand_prepare */" names it in a remark.
        text = re.sub(r"\);\s*/\* of (errand_\w+) \*/", r", \1);", tree.read(root, path))
        text = tree.without(text, "block", "line")
        if path.startswith("tests/hostile/calls_"):
            rows |= set(re.findall(r'\{"(errand_\w+)"', text))
        for statement in re.split(r"[;{}]", text):
            statuses = set(re.findall(r"ERRAND_(E[A-Z]+)\b", statement))
            if re.search(r"\bTWICE\(", statement):
                statuses.add("ENOMEM")  # tests/hostile/memory_test.c
            for name in set(SAID.findall(statement)):
                pairs |= {(name, status) for status in statuses}
    return pairs, rows


report = tree.Report()
sure, any_of, where = documented(report.root)
pairs, rows = provoked(report.root)
for name, (path, line) in sorted(where.items()):
    if name not in rows and name not in EXEMPT and not PURE.match(name):
        report.problem(path, line, "%s has no row in tests/hostile/calls_*.c" % name)


def shown(name, status):
    return (name, status) in pairs or (status in FOR_ALL and name in rows)


for name, statuses in sorted(sure.items()):
    for status in sorted(statuses):
        if not shown(name, status) and (name, status) not in NOT_SHOWN:
            path, line = where[name]
            report.problem(path, line, "no test provokes %s of %s" % (status, name))
for names, status in sorted(set(any_of)):
    if not any(shown(name, status) for name in names):
        path, line = where[names[0]]
        report.problem(path, line, "no test provokes %s of %s" %
                       (status, " or ".join(names)))
BEGINS = re.compile(r"^(?:[a-z].*[ *])?([a-z_]\w*)\(")
OWN_NAME = re.compile(r"__func__|\bERRAND_REQUIRE_ARG\(|\bERRAND__ENTER\(")
for path in tree.c_files(report.root, "src"):
    if not path.endswith(".c"):
        continue
    name = ""
    for line, text in enumerate(tree.read(report.root, path).splitlines(), 1):
        begins = BEGINS.match(text)
        if begins and not text.rstrip().endswith(";"):
            name = begins.group(1)
        if OWN_NAME.search(text) and not re.match(r"errand_(?!_)", name):
            report.problem(path, line, "%s is no public function: a misuse that it tells has to "
                           "name the one that was called" % name)
report.note("errors: %d pairs of function and status" %
            (sum(map(len, sure.values())) + len(set(any_of))))
report.end()
