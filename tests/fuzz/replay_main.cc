// Runs a fuzz target over the files of the folders and files named, once each,
// so that a build without libFuzzer still tests the kept corpus (a target that
// has no corpus yet gets the empty input alone): headrace_replays TARGET
// PATH...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#define REPLAY(name) \
  extern "C" int replay_##name(const uint8_t* data, size_t size);
#include "replays.inc"
#undef REPLAY

namespace {

struct Target {
  std::string_view name;
  int (*run)(const uint8_t* data, size_t size);
};

constexpr Target kTargets[] = {
#define REPLAY(name) {#name, replay_##name},
#include "replays.inc"
#undef REPLAY
};

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

void RunFile(const Target& target, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const Target* const target = argc > 1 ? FindTarget(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "no fuzz target %s\n", argc > 1 ? argv[1] : "named");
    return 2;
  }
  target->run(nullptr, 0);
  int count = 1;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::exists(argv[i])) continue;
    if (!std::filesystem::is_directory(argv[i])) {
      RunFile(*target, argv[i]);
      ++count;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      RunFile(*target, entry.path());
      ++count;
    }
  }
  std::printf("replayed %d inputs\n", count);
  return 0;
}
