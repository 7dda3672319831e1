// Any bytes as an operation script: refused with a sentence that names the line, or read into a
// script whose text gives the same script again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "workloads/op_script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jbdlab::workloads::Op;
  using jbdlab::workloads::OpScript;
  const std::string text(data, data + size);
  const jbdlab::Result<OpScript> script = jbdlab::workloads::parse_op_script(text, "fuzz");
  if (!script) {
    CHECK(script.error().what.starts_with("fuzz:"));
    CHECK(script.error().offset <= size);
    return 0;
  }
  for (const Op& op : script->ops()) {
    CHECK(op.thread < jbdlab::workloads::kThreadsMax);
    CHECK(op.mode <= 07777);
    __extension__ using Wide = unsigned __int128;  // wide enough that the check cannot overflow
    const Wide end = static_cast<Wide>(op.length) * op.count + op.offset;
    CHECK(end <= static_cast<Wide>(INT64_MAX));
  }
  if (size > jbdlab::workloads::kLineBytesMax - 1000) return 0;  // a printed line might be too long
  const jbdlab::Result<OpScript> again =
      jbdlab::workloads::parse_op_script(jbdlab::workloads::print_op_script(*script), "fuzz");
  CHECK(again);
  CHECK(*again == *script);
  CHECK(again->threads() == script->threads());
  CHECK(again->ops_by_thread() == script->ops_by_thread());
  return 0;
}
