#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/core.h>

#include "analyze/ext4_superblock.h"
#include "analyze/features.h"
#include "base/build_info.h"
#include "base/crc32c.h"
#include "cli/arguments.h"
#include "cli/mkfs.h"
#include "cli/output_file.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "workloads/runner.h"

namespace jbdlab::cli {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kSizeDefault = std::uint64_t{1} << 30;
constexpr std::string_view kKernelDefault = "6.18";
// The clock of a run begins an hour after mke2fs, or a second after the last write to an image.
constexpr std::uint64_t kRunTime = kMkfsTime + 3600;
constexpr unsigned kCpusMax = 64;

Syntax syntax() {
  Syntax syntax{
      .verb = "run",
      .synopsis = "OPS [options]",
      .description =
          "Replays an operation script (docs/ops.md) on a simulated ext4 with its journal\n"
          "on an emulated device, and reports what the journal and the device did.",
      .arguments_min = 1,
      .arguments_max = 1};
  syntax.options.add_options()("mkfs", po::value<std::string>(), "options for mke2fs, as one word")(
      "size", po::value<std::string>(), "of the device (default 1G)")(
      "image", po::value<std::string>(), "start from this file system; it is only read")(
      "mount", po::value<std::string>(), "mount options (default: defaults)")(
      "device", po::value<std::string>(), "ram (default) or loop-file")(
      "kernel", po::value<std::string>(), "kernel profile: 6.18 (default)")(
      "cpus", po::value<std::string>(), "processors (default 2)")(
      "seed", po::value<std::string>(), "of everything random (default 0)")(
      "set", po::value<std::string>(), "fast_commit=off: the one setting so far")(
      "image-out", po::value<std::string>(), "write the file system here, when all is over")(
      "trace-out", po::value<std::string>(), "write every event here, one a line")(
      "crash-at", po::value<std::string>(), "op:N, step:N or a time: cut the power then")(
      "keep", po::value<std::string>(),
      "what survives the cut: completed (default), durable, seed:N");
  syntax.add_common_options();
  return syntax;
}

// What the words say, checked as far as no file is needed.
struct RunWords {
  std::string script;
  std::string mkfs, mount, kernel;
  std::string image, image_out, trace_out;
  std::uint64_t size = kSizeDefault;
  std::string crash_at, keep;
  workloads::RunOptions run;
};

Result<std::uint64_t> parse_count(std::string_view text) {
  auto number = parse_number(text);
  if (number && *number == 0) return fail(Errc::usage, "expected a number from 1 on, found 0");
  return number;
}

Result<workloads::CrashPoint> parse_crash_point(std::string_view text) {
  if (text.starts_with("op:") || text.starts_with("step:")) {
    const auto count = parse_count(text.substr(text.find(':') + 1));
    if (!count) return std::unexpected(count.error());
    if (text.starts_with("op:")) return workloads::AfterOp{*count};
    return workloads::AfterRequest{*count};
  }
  const auto time = parse_time(text);
  if (!time) {
    return fail(Errc::usage,
                fmt::format("expected op:N, step:N or a time such as 1.5ms, found '{}'", text));
  }
  return workloads::AtTime{Time{*time}};
}

Result<void> parse_keep(std::string_view text, workloads::RunOptions& run) {
  if (text == "completed") {
    run.keep = sim::Keep::completed;
  } else if (text == "durable") {
    run.keep = sim::Keep::durable;
  } else if (text.starts_with("seed:")) {
    const auto seed = parse_number(text.substr(5));
    if (!seed) return fail(Errc::usage, "--keep: " + seed.error().what);
    run.keep = sim::Keep::random;
    run.keep_seed = *seed;
  } else {
    return fail(Errc::usage,
                fmt::format("--keep: expected completed, durable or seed:N, found '{}'", text));
  }
  return {};
}

Result<void> parse_numbers(const Arguments& arguments, RunWords& words) {
  const auto size = parse_option(arguments, "size", parse_size);
  if (!size) return std::unexpected(size.error());
  words.size = size->value_or(kSizeDefault);
  const auto cpus = parse_option(arguments, "cpus", parse_count);
  if (!cpus) return std::unexpected(cpus.error());
  if (*cpus && **cpus > kCpusMax) {
    return fail(Errc::usage, fmt::format("--cpus: expected 1 to {}, found {}", kCpusMax, **cpus));
  }
  if (*cpus) words.run.cpus = static_cast<unsigned>(**cpus);
  const auto seed = parse_option(arguments, "seed", parse_number);
  if (!seed) return std::unexpected(seed.error());
  words.run.seed = seed->value_or(0);
  return {};
}

Result<RunWords> parse_words(const Arguments& arguments) {
  RunWords words;
  words.script = arguments.positional().front();
  words.mkfs = arguments.value("mkfs").value_or("");
  words.mount = arguments.value("mount").value_or("defaults");
  words.kernel = arguments.value("kernel").value_or(std::string(kKernelDefault));
  words.image = arguments.value("image").value_or("");
  words.image_out = arguments.value("image-out").value_or("");
  words.trace_out = arguments.value("trace-out").value_or("");
  words.crash_at = arguments.value("crash-at").value_or("");
  words.keep = arguments.value("keep").value_or("completed");
  words.run.device = arguments.value("device").value_or("ram");

  if (words.kernel != kKernelDefault) {
    return fail(Errc::usage,
                fmt::format("--kernel: expected {}, found '{}'", kKernelDefault, words.kernel));
  }
  if (const auto setting = arguments.value("set"); setting && *setting != "fast_commit=off") {
    return fail(Errc::usage, fmt::format("--set: '{}' is not simulated yet", *setting));
  }
  if (!words.image.empty() && (arguments.has("mkfs") || arguments.has("size"))) {
    return fail(Errc::usage, "--image says what the file system is: no --mkfs or --size beside it");
  }
  if (const auto numbers = parse_numbers(arguments, words); !numbers) {
    return std::unexpected(numbers.error());
  }
  if (arguments.has("keep") && !arguments.has("crash-at")) {
    return fail(Errc::usage, "--keep: only with --crash-at");
  }
  if (!words.crash_at.empty()) {
    const auto point = parse_option(arguments, "crash-at", parse_crash_point);
    if (!point) return std::unexpected(point.error());
    words.run.crash = **point;
  }
  if (const auto keep = parse_keep(words.keep, words.run); !keep) {
    return std::unexpected(keep.error());
  }
  const auto devices = sim::device_kinds();
  if (std::ranges::none_of(devices,
                           [&](const auto& d) { return d.info().name == words.run.device; })) {
    std::string names;
    for (const auto& device : devices) names += fmt::format(" {}", device.info().name);
    return fail(Errc::usage,
                fmt::format("--device: there is no '{}'; there are:{}", words.run.device, names));
  }
  const auto mount = ext4::MountOptions::parse(words.mount);
  if (!mount) return fail(Errc::usage, "--mount: " + mount.error().what);
  words.run.file_system.mount = *mount;
  return words;
}

std::unexpected<Error> cannot_open(const std::string& path, int error) {
  return fail(Errc::io, fmt::format("{}: cannot open: {}", path, std::strerror(error)));
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_open(path, errno);
  if (std::filesystem::is_directory(path)) {
    return fail(Errc::io, fmt::format("{}: expected a file, found a directory", path));
  }
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return fail(Errc::io, fmt::format("{}: cannot be read", path));
  return text;
}

// The file system that the run starts from.
Result<sim::BlockStore> load_image(const std::string& path) {
  std::array<std::byte, 1024> super{};
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_open(path, errno);
  if (std::filesystem::is_directory(path)) {
    return fail(Errc::io, fmt::format("{}: expected a file system, found a directory", path));
  }
  file.seekg(1024);
  std::array<char, 1024> raw{};
  if (!file.read(raw.data(), raw.size())) {
    return fail(Errc::truncated,
                fmt::format("{}: no ext4 file system: shorter than 2048 bytes", path));
  }
  std::ranges::transform(raw, super.begin(), [](char c) { return static_cast<std::byte>(c); });
  const auto geometry = ext4::Geometry::parse(super);
  if (!geometry)
    return fail(geometry.error().code, fmt::format("{}: {}", path, geometry.error().what));
  return sim::BlockStore::load(path, geometry->block_size);
}

// Nobody who reads a file wants it replaced meanwhile, and one file holds one output.
Result<void> check_outputs(const RunWords& words) {
  struct Named {
    std::string_view option;
    const std::string& path;
  };
  const std::array<Named, 4> files{{{"the script", words.script},
                                    {"--image", words.image},
                                    {"--image-out", words.image_out},
                                    {"--trace-out", words.trace_out}}};
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code error;
    const auto place = [&](const std::string& path) {
      return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    };
    return std::filesystem::equivalent(a, b, error) || place(a) == place(b);
  };
  for (std::size_t i = 2; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Named& one = files[i];
      const Named& other = files[j];
      if (one.path.empty() || other.path.empty() || !same(one.path, other.path)) continue;
      if (!std::filesystem::is_regular_file(one.path) && std::filesystem::exists(one.path))
        continue;
      return fail(Errc::usage, fmt::format("{}: expected another file than that of {}, found '{}'",
                                           one.option, other.option, one.path));
    }
  }
  return {};
}

// What the image holds, as a short text.
std::string contents_digest(const sim::BlockStore& contents) {
  std::uint32_t crc = 0xFFFF'FFFF;
  contents.for_each_chunk([&](std::uint64_t offset, ByteSpan bytes) {
    std::array<std::byte, 8> place{};
    set_le(MutableByteSpan(place), 0, offset);
    crc = crc32c(crc32c(crc, place), bytes);
    return true;
  });
  return fmt::format("crc32c:{:08x}", crc);
}

std::uint64_t start_time(const sim::BlockStore& contents, bool from_image) {
  if (!from_image) return kRunTime;
  std::array<std::byte, 4> written{};
  constexpr std::uint64_t kWtime = 1024 + 0x30;
  contents.read_bytes(kWtime, written);
  return std::max<std::uint64_t>(kRunTime, std::uint64_t{get_le<std::uint32_t>(written, 0)} + 1);
}

void describe(const RunWords& words, std::string_view script_text, const sim::BlockStore* contents,
              workloads::Report& report) {
  const auto base_name = [](const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
  };
  workloads::Provenance& provenance = report.provenance;
  provenance.version = version();
  provenance.build_type = build_type();
  provenance.compiler = compiler();
  provenance.workload = base_name(words.script);
  provenance.workload_digest = workloads::text_digest(script_text);
  provenance.mkfs_options = words.mkfs;
  provenance.mount_options = words.mount;
  provenance.image = base_name(words.image);
  if (!words.image.empty()) provenance.image_digest = contents_digest(*contents);
  provenance.image_size_bytes = contents->size();
  provenance.kernel = words.kernel;
  if (!words.crash_at.empty()) {
    provenance.settings.push_back({"crash_at", words.crash_at});
    provenance.settings.push_back({"keep", words.keep});
  }
}

Result<void> write_image(const sim::BlockStore& contents, OutputFile& file) {
  if (auto sized = file.set_size(contents.size()); !sized) return sized;
  Result<void> result;
  contents.for_each_chunk([&](std::uint64_t offset, ByteSpan bytes) {
    result = file.write_at(offset, bytes);
    return result.has_value();
  });
  return result;
}

// The file for the value of an option that may be empty.
Result<std::optional<OutputFile>> output_file(const std::string& path) {
  if (path.empty()) return std::nullopt;
  auto file = OutputFile::create(path);
  if (!file) return std::unexpected(file.error());
  return std::optional<OutputFile>(std::move(*file));
}

}  // namespace

ExitStatus cmd_run(const std::vector<std::string>& words_given, Console& console) {
  const Syntax grammar = syntax();
  const auto arguments = Arguments::parse(grammar, words_given);
  if (!arguments) return console.refuse(arguments.error());
  if (arguments->flag("help")) return console.help(grammar.help());
  auto words = parse_words(*arguments);
  if (!words) return console.refuse(words.error());

  if (const auto good = check_outputs(*words); !good) return console.refuse(good.error());

  const auto text = read_text(words->script);
  if (!text) return console.refuse(text.error());
  const auto script = workloads::parse_op_script(*text, words->script);
  if (!script) return console.refuse(script.error());
  if (const auto error = workloads::find_unsupported(*script)) return console.refuse(*error);
  if (words->run.crash) {
    const auto* const after = std::get_if<workloads::AfterOp>(&*words->run.crash);
    const std::uint64_t operations = workloads::count_operations(*script);
    if (after != nullptr && after->count > operations) {
      return console.refuse(Error{Errc::usage, 0,
                                  fmt::format("--crash-at: {} has {} operations, no number {}",
                                              words->script, operations, after->count)});
    }
  }

  auto contents =
      words->image.empty() ? make_file_system(words->mkfs, words->size) : load_image(words->image);
  if (!contents) return console.refuse(contents.error());
  words->run.file_system.journal.epoch_seconds = start_time(*contents, !words->image.empty());

  auto image = output_file(words->image_out);
  auto trace = output_file(words->trace_out);
  for (const auto* const file : {&image, &trace}) {
    if (*file) continue;
    console.say(file->error().what);
    return ExitStatus::output;
  }
  Result<void> trace_written;
  if (*trace) {
    words->run.trace = [&](std::string_view line) {
      if (!trace_written) return;
      trace_written = (*trace)->append(line);
      if (trace_written) trace_written = (*trace)->append("\n");
    };
  }

  workloads::Report described;
  describe(*words, *text, &*contents, described);
  std::array<std::byte, 1024> super{};
  contents->read_bytes(1024, super);
  Result<void> image_written;
  auto outcome = workloads::run_script(*script, std::move(*contents), words->run,
                                       [&](const sim::BlockStore& end) {
                                         if (*image) image_written = write_image(end, **image);
                                       });
  if (!outcome) {
    Error error = outcome.error();
    if (!words->image.empty()) error.what = fmt::format("{}: {}", words->image, error.what);
    // What mke2fs was told to make and we cannot simulate is a wrong wish, not a bad input.
    if (words->image.empty()) error.code = Errc::usage;
    return console.refuse(error);
  }
  // Both outputs, or none.
  if (image_written && trace_written) {
    if (*trace) trace_written = (*trace)->commit();
    if (*image && trace_written) image_written = (*image)->commit();
  }
  for (const Result<void>* written : {&image_written, &trace_written}) {
    if (*written) continue;
    console.say(written->error().what);
    return ExitStatus::output;
  }
  if (words->run.crash && !outcome->crashed) {
    console.say(
        fmt::format("the run was over before --crash-at {}: nothing was cut off", words->crash_at));
  }

  workloads::Report& report = outcome->report;
  const auto devices = std::move(report.provenance.device_parameters);
  const std::string device = report.provenance.device;
  const std::uint32_t cpus = report.provenance.cpus;
  const std::uint64_t seed = report.provenance.seed;
  report.provenance = std::move(described.provenance);
  report.provenance.device = device;
  report.provenance.device_parameters = devices;
  report.provenance.cpus = cpus;
  report.provenance.seed = seed;
  report.config.mount_effective =
      fmt::format("rw,relatime{}{}", words->run.file_system.mount.barrier ? "" : ",nobarrier",
                  words->run.file_system.mount.commit_interval == std::chrono::seconds(5)
                      ? ""
                      : fmt::format(",commit={}", std::chrono::duration_cast<std::chrono::seconds>(
                                                      words->run.file_system.mount.commit_interval)
                                                      .count()));
  // Parsed once before: run_script() would have failed.
  const auto features = analyze::feature_names(analyze::Ext4Superblock::parse(super)->features());
  for (const auto* const names : {&features.compat, &features.incompat, &features.ro_compat}) {
    report.config.features.insert(report.config.features.end(), names->begin(), names->end());
  }
  if (arguments->flag("json")) {
    console.print(workloads::to_json(report).dump(
                      2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                  "\n");
  } else {
    console.print(workloads::to_text(report));
  }
  if (!report.failure) return ExitStatus::ok;
  console.say(fmt::format("{}:{}: {}: {}", words->script, report.failure->line,
                          report.failure->operation, report.failure->what));
  return ExitStatus::findings;
}

}  // namespace jbdlab::cli
