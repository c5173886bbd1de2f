// Simulated clusters (src/simulator, docs/design/simulator.md): how long steps
// and recoveries take on links of a given kind. A line of JSON a run, or a
// table.
//
//   simulate sums|servers|recovery --workers 64,256 --bytes 64M ...  (--help)
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "simulator/collective.h"
#include "simulator/recovery.h"
#include "simulator/servers.h"

namespace {

using namespace headrace;
using namespace headrace::simulator;

constexpr char kUsage[] =
    R"(simulate [WHAT [--OPTION VALUE]...]      WHAT: all of them

  sums      a collective of all workers
    --way reduce|scatter|gather|broadcast   (reduce)

  servers   steps on parameter servers, of the first N of M gradients
    --servers N                                            (8)
    --wanted N           0: of all workers                 (0)
    --compute-ms D       a worker's own work in a step     (50)
    --jitter P           by so much of it more or less     (0)
    --slow F             the last worker takes F as long   (1)
    --steps N                                              (5)

  recovery  a worker of a group whose members come and go dies
    --dies I             which; default the one in the middle
    --silent 0|1         its machine is gone, not its process  (0)
    --restarts-s D       when it is there again; 0: never      (0)
    --bytes N            of the state that it is then sent

  Of all:
    --workers N,N...     how many                          (64,256)
    --bytes N            of a member's tensor; K, M, G     (64M)
    --seed N                                               (1)
  Links:
    --link-mbit R        what goes through each way        (936)
    --delay-ms D         one way, of a message             (0.1)
    --overhead-bytes N   of a message, on the link         (60)
    --burst-bytes N      at once after a pause             (0)
    --message-us D       a transport's work for a message  (30)
    --byte-ns D          for a byte                        (0.4)
    --merge-ns D         a member's work for a byte        (0.3)
    --processors N       that all share; 0: each its own   (0)
    --loss P             share of messages sent twice      (0)
)";

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "simulate: %s\n\n%s", why.c_str(), kUsage);
  std::exit(2);
}

[[noreturn]] void Ended(const Status& why) {
  std::fprintf(stderr, "simulate: %s\n", std::string(why.message()).c_str());
  std::exit(1);
}

// The options that were given; each is to be asked for.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 2; i < argc; i += 2) {
      const std::string name = argv[i];
      if (!name.starts_with("--") || i + 1 == argc) Fail("what is " + name);
      given_[name.substr(2)] = argv[i + 1];
    }
  }
  std::string Text(const std::string& name, const std::string& otherwise) {
    const auto at = given_.find(name);
    if (at == given_.end()) return otherwise;
    std::string value = at->second;
    given_.erase(at);
    return value;
  }
  double Number(const std::string& name, double otherwise) {
    const std::string text = Text(name, "");
    double value = otherwise;
    if (!text.empty() && (!absl::SimpleAtod(text, &value) || value < 0)) {
      Fail("--" + name + " " + text + " is no number");
    }
    return value;
  }
  // Such as 64M.
  int64_t Bytes(const std::string& name, const std::string& otherwise) {
    std::string text = Text(name, otherwise);
    int64_t unit = 1, value = 0;
    const size_t which = std::string("KMG").find(text.back());
    if (!text.empty() && which != std::string::npos) {
      unit = int64_t{1} << (10 * (which + 1));
      text.pop_back();
    }
    if (!absl::SimpleAtoi(text, &value) || value <= 0 || value > (1 << 30)) {
      Fail("--" + name + " " + text + " is no size");
    }
    return value * unit;
  }
  std::vector<int> Counts(const std::string& name,
                          const std::string& otherwise) {
    std::vector<int> counts;
    for (const auto text : absl::StrSplit(Text(name, otherwise), ',')) {
      int count = 0;
      if (!absl::SimpleAtoi(text, &count) || count < 1) {
        Fail(absl::StrCat("--", name, " ", text, " is no number"));
      }
      counts.push_back(count);
    }
    return counts;
  }
  void End() const {
    if (!given_.empty()) Fail("what is --" + given_.begin()->first);
  }

 private:
  std::map<std::string, std::string> given_;
};

LinkModel LinkOf(Options& o) {
  LinkModel link;
  link.rate = o.Number("link-mbit", link.rate * 8e-6) * 1e6 / 8;
  link.delay = o.Number("delay-ms", link.delay * 1e3) / 1e3;
  link.overhead = o.Number("overhead-bytes", link.overhead);
  link.burst = o.Number("burst-bytes", 0);
  link.message_work = o.Number("message-us", link.message_work * 1e6) / 1e6;
  link.byte_work = o.Number("byte-ns", link.byte_work * 1e9) / 1e9;
  link.merge_work = o.Number("merge-ns", link.merge_work * 1e9) / 1e9;
  link.loss = o.Number("loss", 0);
  link.processors = static_cast<int>(o.Number("processors", 0));
  if (link.rate <= 0) Fail("a link without a rate");
  return link;
}

void Sums(Options& o) {
  const std::map<std::string, CollectiveKind> kinds = {
      {"reduce", CollectiveKind::kReduce},
      {"scatter", CollectiveKind::kReduceScatter},
      {"gather", CollectiveKind::kGather},
      {"broadcast", CollectiveKind::kBroadcast}};
  const auto kind = kinds.find(o.Text("way", "reduce"));
  if (kind == kinds.end()) Fail("there is no such way");
  const LinkModel link = LinkOf(o);
  CollectiveRun run;
  run.kind = kind->second;
  run.bytes = o.Bytes("bytes", "64M");
  run.seed = static_cast<uint64_t>(o.Number("seed", 1));
  const std::vector<int> workers = o.Counts("workers", "64,256");
  o.End();
  std::printf("%8s %12s %10s %10s %12s\n", "workers", "time, ms", "link used",
              "messages", "work, ms");
  for (const int count : workers) {
    run.members = count;
    const auto times = SimulateCollective(link, run);
    if (!times.ok()) Ended(times.status());
    std::printf("%8d %12.3f %9.1f%% %10ld %12.3f\n", count,
                times->seconds * 1e3, times->link * 100,
                static_cast<long>(times->messages[0]),
                times->work / count * 1e3);
    std::fflush(stdout);
  }
}

void Servers(Options& o) {
  const LinkModel link = LinkOf(o);
  ServersRun run;
  run.graph.servers = static_cast<int>(o.Number("servers", 8));
  run.graph.bytes = o.Bytes("bytes", "64M");
  const auto wanted = static_cast<int>(o.Number("wanted", 0));
  run.compute = o.Number("compute-ms", 50) / 1e3;
  run.jitter = o.Number("jitter", 0);
  const double slow = o.Number("slow", 1);
  run.steps = static_cast<int>(o.Number("steps", 5));
  run.seed = static_cast<uint64_t>(o.Number("seed", 1));
  const std::vector<int> workers = o.Counts("workers", "64,256");
  o.End();
  std::printf("%8s %8s %12s %12s %10s %10s %12s\n", "workers", "wanted",
              "first, ms", "step, ms", "applied", "dropped", "server link");
  for (const int count : workers) {
    run.graph.workers = count;
    run.graph.wanted = wanted > 0 ? wanted : count;
    run.slow.assign(count, 1);
    run.slow.back() = slow;
    const auto times = SimulateServers(link, run);
    if (!times.ok()) Ended(times.status());
    std::printf("%8d %8d %12.3f %12.3f %10ld %10ld %11.1f%%\n", count,
                run.graph.wanted, times->first * 1e3, times->step * 1e3,
                static_cast<long>(times->applied),
                static_cast<long>(times->dropped), times->server_link * 100);
    std::fflush(stdout);
  }
}

void Recovery(Options& o) {
  const LinkModel link = LinkOf(o);
  RecoveryRun run;
  const auto dies = static_cast<int>(o.Number("dies", 1e9));
  run.silent = o.Number("silent", 0) != 0;
  run.restarts = o.Number("restarts-s", 0);
  run.state_bytes = o.Bytes("bytes", "64M");
  run.seed = static_cast<uint64_t>(o.Number("seed", 1));
  const std::vector<int> workers = o.Counts("workers", "64,256");
  o.End();
  std::printf("%8s %10s %10s %10s %10s %10s %10s\n", "workers", "formed, s",
              "noticed, s", "agreed, s", "joined, s", "state, s", "messages");
  for (const int count : workers) {
    run.members = count;
    run.dies = dies < 1000000000 ? dies : count / 2;
    const auto times = SimulateRecovery(link, run);
    if (!times.ok()) Ended(times.status());
    std::printf("%8d %10.3f %10.3f %10.3f %10.3f %10.3f %10ld\n", count,
                times->formed, times->noticed, times->agreed, times->joined,
                times->state, static_cast<long>(times->messages));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(Options&)> all = {
      {"sums", Sums}, {"servers", Servers}, {"recovery", Recovery}};
  if (argc > 1) {
    const auto what = all.find(argv[1]);
    if (what == all.end()) Fail(absl::StrCat("there is no ", argv[1]));
    Options options(argc, argv);
    what->second(options);
    return 0;
  }
  for (const auto& [name, run] : all) {
    std::printf("%s\n", name.c_str());
    Options options(argc, argv);
    run(options);
  }
  return 0;
}
