// How long a signature takes, and how much memory the process had at most.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "command/command.h"
#include "command/model/callable.h"
#include "command/text/json_writer.h"

namespace headrace::command {
namespace {

using Clock = std::chrono::steady_clock;

constexpr PositionalDef kBenchPositionals[] = {
    {"PATH", "A SavedModel's folder, or a graph (.pb, .pbtxt)."}};

constexpr OptionDef kBenchOptions[] = {
    kInputOption,
    kInputsOption,
    kExamplesOption,
    kTagSetOption,
    kSignatureOption,
    kSafeOption,
    kPolicyOption,
    kOutputsOption,
    {"runs", 'n', "COUNT", "How many calls are measured (100)."},
    {"warmup", 0, "COUNT", "How many calls go before (10)."},
    {"batch", 'b', "SIZE",
     "What stands for unknown sizes of inputs that are not given, which are "
     "zeros (1)."},
    {"json", 0, "", "Print JSON."}};

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

struct Measured {
  double open = 0, first = 0;  // milliseconds
  std::vector<double> calls;   // sorted
  int64_t peak_bytes = 0;

  double Percentile(double p) const {
    const double place = p / 100 * static_cast<double>(calls.size() - 1);
    return calls[static_cast<size_t>(place + 0.5)];
  }
  double Mean() const {
    double sum = 0;
    for (const double ms : calls) sum += ms;
    return sum / static_cast<double>(calls.size());
  }
};

int64_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

constexpr double kPercentiles[] = {50, 90, 99};

void PrintMeasured(const Measured& m, Output& out) {
  out.Print(absl::StrFormat("opened in %.2f ms, first call %.4f ms\n", m.open,
                            m.first),
            absl::StrFormat("%d calls: mean %.4f ms, min %.4f ms",
                            m.calls.size(), m.Mean(), m.calls.front()));
  for (const double p : kPercentiles) {
    out.Print(absl::StrFormat(", p%g %.4f ms", p, m.Percentile(p)));
  }
  out.Print(absl::StrFormat(", max %.4f ms\npeak memory %.1f MB\n",
                            m.calls.back(), m.peak_bytes / 1e6));
}

void WriteMeasured(const Measured& m, Output& out) {
  JsonWriter json;
  json.BeginObject();
  const auto number = [&](StringView key, double value) {
    json.Key(key);
    json.Number(value);
  };
  number("open_ms", m.open);
  number("first_ms", m.first);
  json.IntMember("calls", static_cast<int64_t>(m.calls.size()));
  number("mean_ms", m.Mean());
  number("min_ms", m.calls.front());
  for (const double p : kPercentiles) {
    number(absl::StrFormat("p%g_ms", p), m.Percentile(p));
  }
  number("max_ms", m.calls.back());
  json.IntMember("peak_bytes", m.peak_bytes);
  json.End();
  out.Print(json.Take());
}

StatusOr<int> RunBench(const Arguments& args, Output& out) {
  constexpr int64_t kMostRuns = 10'000'000, kMostBatch = 1 << 30;
  HR_ASSIGN_OR_RETURN(const int64_t runs, args.Int("runs", 100, 1, kMostRuns));
  HR_ASSIGN_OR_RETURN(const int64_t warmup,
                      args.Int("warmup", 10, 0, kMostRuns));
  HR_ASSIGN_OR_RETURN(const int64_t batch, args.Int("batch", 1, 1, kMostBatch));
  Measured m;
  const Clock::time_point begin = Clock::now();
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kBenchOptions));
  HR_ASSIGN_OR_RETURN(const auto callable, OpenCallable(source, args));
  m.open = MillisecondsSince(begin);
  HR_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                      InputsOf(*callable, args, batch));
  std::vector<Tensor> results;
  for (int64_t i = -1 - warmup; i < runs; ++i) {
    const Clock::time_point start = Clock::now();
    HR_RETURN_IF_ERROR(callable->Call(inputs, &results));
    const double ms = MillisecondsSince(start);
    if (i == -1 - warmup) m.first = ms;
    if (i >= 0) m.calls.push_back(ms);
  }
  std::sort(m.calls.begin(), m.calls.end());
  m.peak_bytes = PeakBytes();
  if (args.Has("json")) {
    WriteMeasured(m, out);
  } else {
    PrintMeasured(m, out);
  }
  return kDone;
}

}  // namespace

const CommandDef kBenchCommand = {
    "bench",
    "How long a model's signature takes, and its memory.",
    kBenchPositionals,
    kBenchOptions,
    "Inputs that are not given are zeros. Times are those of whole calls in "
    "this\n"
    "process, memory is the most that it had.",
    RunBench};

}  // namespace headrace::command
