// What importing a GraphDef of 100,000 nodes takes, and letting go of it.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "graph/import.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

constexpr int kNodes = 100000;
constexpr int kRounds = 12;

// A chain of them, named as tracing names them.
std::string Chain() {
  tensorflow::GraphDef def;
  def.mutable_versions()->set_producer(kGraphVersion);
  auto* x = def.add_node();
  x->set_name("Placeholder");
  x->set_op("Placeholder");
  (*x->mutable_attr())["dtype"].set_type(tensorflow::DT_FLOAT);
  (*x->mutable_attr())["shape"].mutable_shape();
  std::string last = x->name();
  for (int i = 0; i < kNodes; ++i) {
    auto* n = def.add_node();
    n->set_name(i == 0 ? "Neg" : absl::StrCat("Neg_", i));
    n->set_op("Neg");
    n->add_input(last);
    (*n->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
    last = n->name();
  }
  return def.SerializeAsString();
}

void Run() {
  using Clock = std::chrono::steady_clock;
  using Ms = std::chrono::duration<double, std::milli>;
  const std::string bytes = Chain();
  double import = 1e9, release = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    auto graph = std::make_shared<Graph>();
    const Status status =
        ImportGraphBytes(bytes, ImportOptions(), graph.get(), nullptr);
    if (!status.ok()) {
      std::printf("%s\n", std::string(status.message()).c_str());
      std::exit(1);
    }
    const auto imported = Clock::now();
    graph = nullptr;
    import = std::min(import, Ms(imported - start).count());
    release = std::min(release, Ms(Clock::now() - imported).count());
  }
  std::printf("import of %d nodes %7.1f ms, its release %6.1f ms\n", kNodes,
              import, release);
}

}  // namespace
}  // namespace headrace

int main() { headrace::Run(); }
