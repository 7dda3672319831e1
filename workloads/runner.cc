#include "workloads/runner.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "sim/engine/engine.h"
#include "sim/engine/sync.h"
#include "workloads/io_calls.h"

namespace jbdlab::workloads {
namespace {

using ext4::Errno;
using ext4::KResult;
using ext4::OpenFile;
using sim::Task;

// What the recording driver itself needs to compute the contents of a write before the call:
// 2.9 ns a byte (opdriver's fill() at about 3 GHz). It is the program's time, not the system's, and
// in no latency; but clocks go on, and with them time stamps.
constexpr std::int64_t kFillPicosecondsPerByte = 2900;
Duration fill_time(std::uint64_t bytes) {
  return Duration(static_cast<std::int64_t>(bytes) * kFillPicosecondsPerByte / 1000);
}

constexpr std::uint8_t kOpenFlagsNotSimulated = kOpenTruncate | kOpenDirect;

bool is_simulated(OpKind kind) {
  switch (kind) {
    case OpKind::create:
    case OpKind::open:
    case OpKind::close:
    case OpKind::write:
    case OpKind::append:
    case OpKind::writemagic:
    case OpKind::fsync:
    case OpKind::fdatasync:
    case OpKind::mkdir:
    case OpKind::chmod:
    case OpKind::stat:
    case OpKind::sync:
    case OpKind::syncfs:
    case OpKind::sleepms:
    case OpKind::barrier:
    case OpKind::mark:
      return true;
    default:
      return false;
  }
}

// All threads of the script meet; the last to come may do something for all.
class Meeting {
 public:
  Meeting(sim::Engine& engine, std::size_t count) : queue_(engine), count_(count) {}

  // True for the one that came last.
  Task<bool> wait() {
    const std::uint64_t round = round_;
    if (++arrived_ == count_) {
      release();
      co_return true;
    }
    while (round == round_) co_await queue_.wait();
    co_return false;
  }
  // A thread has ended early: the others need not wait for it.
  void leave() {
    --count_;
    if (arrived_ > 0 && arrived_ == count_) release();
  }

 private:
  void release() {
    arrived_ = 0;
    ++round_;
    queue_.wake_all();
  }

  sim::WaitQueue queue_;
  std::size_t count_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
};

// One run: everything that lives as long as it does.
class Run {
 public:
  Run(const OpScript& script, const RunOptions& options)
      : script_(script),
        options_(options),
        trace_(engine_),
        threads_(script.threads()),
        meeting_(engine_, threads_.size()),
        ended_(engine_),
        never_(engine_) {}

  ~Run() {
    trace_.set_sink({});  // what processes hand over in their end never was
    engine_.abandon();    // they refer to what dies before the engine
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<RunOutcome> execute(sim::BlockStore contents,
                             const std::function<void(const sim::BlockStore&)>& on_end);

 private:
  struct Worker {
    ext4::Thread thread;
    std::vector<std::uint32_t> ops;    // indexes into the script's
    std::map<TextId, OpenFile> files;  // by path as written
    Duration own_time{};               // of the operation, spent in the driver
  };

  Task<> main();
  Task<> work(Worker& worker);
  Task<> meet(const Op& op);
  Task<KResult<void>> perform(Worker& worker, const Op& op);
  Task<KResult<void>> perform_writes(Worker& worker, const Op& op);
  Task<KResult<OpenFile*>> file_of(Worker& worker, const Op& op);
  Task<KResult<void>> open_file(Worker& worker, TextId path, ext4::OpenHow how);
  Task<> close_file(Worker& worker, TextId path);
  void finish_op(const Op& op, Duration latency);
  void begin_phase(std::string_view name);
  void end_phase();

  const OpScript& script_;
  const RunOptions& options_;
  sim::Engine engine_;
  sim::Trace trace_;
  std::unique_ptr<sim::Device> device_;
  std::unique_ptr<sim::BlockLayer> blocks_;
  std::unique_ptr<ext4::FileSystem> file_system_;
  std::vector<std::uint8_t> threads_;
  std::vector<Worker> workers_;
  Meeting meeting_;
  sim::WaitQueue ended_, never_;
  std::size_t working_ = 0;
  Report report_;
  std::string phase_;
  Time phase_began_{};
  std::uint64_t operations_ = 0;
  std::optional<Error> mount_error_;
  bool stop_ = false;     // the engine stops: all is done, or the power is gone
  bool crashed_ = false;  // after an operation
  bool mounted_ = false;
  bool finished_ = false;  // unmounted
};

void Run::begin_phase(std::string_view name) {
  trace_.phase(name);
  phase_ = name;
  phase_began_ = engine_.now();
  report_.phase(phase_);
}

void Run::end_phase() {
  PhaseReport& phase = report_.phase(phase_);
  phase.counters.sim += take(trace_.counters);
  phase.elapsed += engine_.now() - phase_began_;
}

Task<> Run::meet(const Op& op) {
  const bool last = co_await meeting_.wait();
  if (op.kind != OpKind::mark) co_return;
  if (last) {
    end_phase();
    begin_phase(script_.other(op));
  }
  co_await meeting_.wait();
}

void Run::finish_op(const Op& op, Duration latency) {
  PhaseReport& phase = report_.phase(phase_);
  ++phase.counters.ops[op.kind];
  trace_.op(op_name(op.kind), op.thread);
  if (op.kind == OpKind::write || op.kind == OpKind::append || op.kind == OpKind::writemagic) {
    phase.counters.bytes_written += op.length * op.count;
  }
  if (phase_ == "run") {
    report_.latency_ns[op.kind].add(static_cast<std::uint64_t>(latency.count()));
  }
  ++operations_;
  if (!options_.crash) return;
  const auto* const after = std::get_if<AfterOp>(&*options_.crash);
  if (after != nullptr && operations_ == after->count) stop_ = crashed_ = true;
}

Task<> Run::work(Worker& worker) {
  for (const std::uint32_t index : worker.ops) {
    if (report_.failure) break;
    const Op& op = script_.ops()[index];
    if (is_meeting(op.kind)) {
      co_await meet(op);
      continue;
    }
    const Time started = engine_.now();
    worker.own_time = Duration::zero();
    const KResult<void> done = co_await perform(worker, op);
    if (!done) {
      if (!report_.failure) {
        report_.failure =
            OpFailure{op.line, print_op(script_, op), std::string(ext4::errno_name(done.error()))};
      }
      break;
    }
    finish_op(op, engine_.now() - started - worker.own_time);
    if (crashed_) co_await never_.wait();  // nothing happens after the power cut
  }
  meeting_.leave();
  --working_;
  ended_.wake_all();
}

Task<> Run::close_file(Worker& worker, TextId path) {
  const auto at = worker.files.find(path);
  if (at == worker.files.end()) co_return;
  co_await file_system_->close(worker.thread, at->second);
  worker.files.erase(at);
}

Task<KResult<void>> Run::open_file(Worker& worker, TextId path, ext4::OpenHow how) {
  const KResult<OpenFile> file =
      co_await file_system_->open(worker.thread, script_.text(path), how);
  if (!file) co_return std::unexpected(file.error());
  co_await close_file(worker, path);
  worker.files.emplace(path, *file);
  co_return KResult<void>();
}

// The thread's handle on the file, opened for reading and writing if there is none, or read-only
// where that is all that can be had.
Task<KResult<OpenFile*>> Run::file_of(Worker& worker, const Op& op) {
  if (!worker.files.contains(op.path)) {
    KResult<void> opened = co_await open_file(worker, op.path, {});
    if (!opened && opened.error() == Errno::eisdir) {
      opened = co_await open_file(worker, op.path, {.writable = false});
    }
    if (!opened) co_return std::unexpected(opened.error());
  }
  co_return &worker.files.at(op.path);
}

Task<KResult<void>> Run::perform_writes(Worker& worker, const Op& op) {
  const KResult<OpenFile*> file = co_await file_of(worker, op);
  if (!file) co_return std::unexpected(file.error());
  if (!(*file)->writable) co_return std::unexpected(Errno::ebadf);
  const bool append = op.kind == OpKind::append;
  ext4::WriteData data;
  data.seed = script_.path_seed(op);
  data.magic = op.kind == OpKind::writemagic;
  std::uint64_t offset = op.offset;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    if (append) offset = co_await file_system_->fstat_size(worker.thread, **file);
    for (const IoCall call : WriteCalls({offset, op.length})) {
      const Duration fill = fill_time(call.length);
      worker.own_time += fill;
      co_await engine_.delay(fill);
      const KResult<void> written = co_await file_system_->write(worker.thread, **file, call.offset,
                                                                 call.length, data, append);
      if (!written) co_return written;
    }
    offset += op.length;
  }
  co_return KResult<void>();
}

Task<KResult<void>> Run::perform(Worker& worker, const Op& op) {
  ext4::Thread& thread = worker.thread;
  switch (op.kind) {
    case OpKind::create: {
      const ext4::OpenHow how{
          .create = true, .exclusive = true, .mode = static_cast<std::uint16_t>(op.mode)};
      co_return co_await open_file(worker, op.path, how);
    }
    case OpKind::open: {
      const ext4::OpenHow how{.create = (op.open_flags & kOpenCreate) != 0,
                              .writable = (op.open_flags & kOpenReadOnly) == 0,
                              .sync = (op.open_flags & kOpenSync) != 0,
                              .dsync = (op.open_flags & kOpenDsync) != 0};
      co_return co_await open_file(worker, op.path, how);
    }
    case OpKind::close:
      co_await close_file(worker, op.path);
      co_return KResult<void>();
    case OpKind::write:
    case OpKind::append:
    case OpKind::writemagic:
      co_return co_await perform_writes(worker, op);
    case OpKind::fsync:
    case OpKind::fdatasync: {
      const KResult<OpenFile*> file = co_await file_of(worker, op);
      if (!file) co_return std::unexpected(file.error());
      co_return co_await file_system_->fsync(thread, **file, op.kind == OpKind::fdatasync);
    }
    case OpKind::mkdir:
      co_return co_await file_system_->mkdir(thread, script_.path(op),
                                             static_cast<std::uint16_t>(op.mode));
    case OpKind::chmod:
      co_return co_await file_system_->chmod(thread, script_.path(op),
                                             static_cast<std::uint16_t>(op.mode));
    case OpKind::stat:  // any result is fine
      static_cast<void>(co_await file_system_->lstat(thread, script_.path(op)));
      co_return KResult<void>();
    case OpKind::sync:
      co_return co_await file_system_->sync(thread);
    case OpKind::syncfs:
      co_return co_await file_system_->syncfs(thread);
    case OpKind::sleepms:
      co_await engine_.delay(std::chrono::milliseconds(op.number));
      co_return KResult<void>();
    default:
      break;
  }
  CHECK(is_simulated(op.kind));  // find_unsupported() refuses such scripts
  co_return std::unexpected(Errno::eopnotsupp);
}

// The process that the recording calls the driver, from mount to unmount.
Task<> Run::main() {
  begin_phase("mount");
  const Result<void> mounted = co_await file_system_->mount();
  if (!mounted) {
    mount_error_ = mounted.error();
    stop_ = true;
    co_return;
  }
  mounted_ = true;
  end_phase();
  begin_phase("run");
  working_ = workers_.size();
  for (Worker& worker : workers_) engine_.spawn(work(worker));
  while (working_ > 0) co_await ended_.wait();
  for (Worker& worker : workers_) {
    while (!worker.files.empty()) co_await close_file(worker, worker.files.begin()->first);
  }
  end_phase();
  begin_phase("umount");
  co_await file_system_->unmount();
  end_phase();
  stop_ = finished_ = true;
}

Result<RunOutcome> Run::execute(sim::BlockStore contents,
                                const std::function<void(const sim::BlockStore&)>& on_end) {
  std::array<std::byte, 1024> super{};
  if (contents.size() < 2048) {
    return fail(Errc::truncated, "the file system has no room for a superblock");
  }
  contents.read_bytes(1024, super);
  const Result<ext4::Geometry> geometry = ext4::Geometry::parse(super);
  if (!geometry) return std::unexpected(geometry.error());
  if (geometry->block_size != contents.chunk_size()) {
    return fail(Errc::invalid, fmt::format("blocks have {} bytes, expected {}",
                                           geometry->block_size, contents.chunk_size()));
  }
  if (geometry->blocks * geometry->block_size > contents.size()) {
    return fail(Errc::truncated,
                fmt::format("the superblock speaks of {} bytes, the image has {}",
                            geometry->blocks * geometry->block_size, contents.size()));
  }
  const sim::DeviceOptions device_options{
      .seed = options_.seed,
      .track_durability = options_.crash && options_.keep != sim::Keep::completed};
  auto device = sim::make_device(options_.device, engine_, std::move(contents), device_options);
  if (!device) return std::unexpected(device.error());
  device_ = std::move(*device);
  blocks_ = std::make_unique<sim::BlockLayer>(engine_, trace_, *device_);
  ext4::FileSystem::Config config = options_.file_system;
  config.cpus = options_.cpus;
  config.seed = options_.seed;
  file_system_ =
      std::make_unique<ext4::FileSystem>(engine_, trace_, *blocks_, *geometry, std::move(config));
  if (options_.trace) trace_.set_sink(options_.trace);

  workers_.resize(threads_.size());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    workers_[i].thread.cpu = threads_[i] % options_.cpus;
    workers_[i].thread.pid = threads_[i] + 1U;
  }
  for (std::uint32_t index = 0; index < script_.ops().size(); ++index) {
    const Op& op = script_.ops()[index];
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (is_meeting(op.kind) || threads_[i] == op.thread) workers_[i].ops.push_back(index);
    }
  }

  Time limit = Time::max();
  if (options_.crash) {
    if (const auto* const after = std::get_if<AfterRequest>(&*options_.crash)) {
      device_->notify_after(after->count, &stop_);
    } else if (const auto* const at = std::get_if<AtTime>(&*options_.crash)) {
      limit = at->at;
    }
  }
  engine_.spawn(main());
  engine_.run_until(stop_, limit);
  if (mount_error_) return std::unexpected(*mount_error_);
  if (!finished_) {
    CHECK(options_.crash);  // otherwise some process waits for ever
    end_phase();
  }

  RunOutcome outcome;
  report_.elapsed = engine_.now().time_since_epoch();
  report_.provenance.device = options_.device;
  for (const sim::DeviceParameter& parameter : device_->info().parameters) {
    const std::string name = parameter.unit.empty()
                                 ? std::string(parameter.key)
                                 : fmt::format("{} {}", parameter.key, parameter.unit);
    report_.provenance.device_parameters.push_back({name, parameter.value});
  }
  report_.provenance.cpus = options_.cpus;
  report_.provenance.seed = options_.seed;
  report_.config.block_size = geometry->block_size;
  report_.config.threads = static_cast<std::uint32_t>(threads_.size());
  if (mounted_) {  // else the power went before the journal's superblock was read
    const jbd2::LogSuperblock& log = file_system_->journal().machine().superblock();
    report_.config.journal_blocks = log.block_count();
    report_.config.journal_fc_blocks = log.fast_commit_blocks();
  }
  outcome.crashed = !finished_;
  outcome.events = engine_.events_fired();
  outcome.requests = device_->completed_requests();
  outcome.report = std::move(report_);
  if (on_end) {
    if (!finished_ && options_.keep != sim::Keep::completed) {
      on_end(device_->crash_image(options_.keep, options_.keep_seed));
    } else {
      on_end(device_->contents());
    }
  }
  return outcome;
}

}  // namespace

std::optional<Error> find_unsupported(const OpScript& script) {
  for (const Op& op : script.ops()) {
    const bool simulated = is_simulated(op.kind) && (op.kind != OpKind::open ||
                                                     (op.open_flags & kOpenFlagsNotSimulated) == 0);
    if (simulated) continue;
    return Error{Errc::usage, 0,
                 fmt::format("{}:{}: '{}' is not simulated yet", script.name(), op.line,
                             print_op(script, op))};
  }
  return std::nullopt;
}

std::uint64_t count_operations(const OpScript& script) {
  std::uint64_t count = 0;
  for (const Op& op : script.ops()) {
    if (!is_meeting(op.kind)) ++count;
  }
  return count;
}

Result<RunOutcome> run_script(const OpScript& script, sim::BlockStore contents,
                              const RunOptions& options,
                              const std::function<void(const sim::BlockStore&)>& on_end) {
  Run run(script, options);
  return run.execute(std::move(contents), on_end);
}

}  // namespace jbdlab::workloads
