// Workers that come and go: the twin of python/headrace/distribute/elastic.py.
#include "headrace/elastic.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/files/file_system.h"
#include "base/files/files.h"
#include "base/hash_map.h"
#include "cc/compose.h"
#include "cc/workers.h"
#include "train/checkpoint.h"

namespace headrace::tf::distribute {

using internal::Access;
using internal::Check;
using internal::Throw;
using internal::Workers;

namespace {

// The files of a checkpoint.
constexpr const char* kFiles[] = {"/state.index", "/state.data-00000-of-00001"};
// Of the memory that a state may come with; a checkpoint's bytes in one tensor.
constexpr int64_t kWord = 8;

std::atomic<int64_t> next_folder{0};

std::shared_ptr<Workers> WorkersThatCome(const TaskConfig& task,
                                         const ElasticOptions& options) {
  auto made =
      std::make_shared<Workers>(task, std::nullopt, options.communication,
                                options.replicas, /*elastic=*/true);
  const auto most = static_cast<int>(made->most());
  if (options.min_workers < 0 || options.min_workers > most) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("min_workers=", options.min_workers, " of a cluster of ",
                       most, " workers"));
  }
  if (!(options.start_seconds >= 0) || !(options.timeout_seconds >= 0)) {
    Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat("start_seconds and timeout_seconds are not negative, "
                     "and are ",
                     options.start_seconds, " and ", options.timeout_seconds));
  }
  return made;
}

void RemoveFolder(const std::string& folder) {
  if (folder.empty()) return;
  std::string local;
  FileSystem* fs = Check(FileSystemFor(folder, &local));
  for (const char* file : kFiles) fs->Delete(local + file).IgnoreError();
  fs->DeleteDirectory(local).IgnoreError();
}

}  // namespace

ElasticStrategy::ElasticStrategy(const ElasticOptions& options)
    : ElasticStrategy(TaskConfig::FromEnvironment(), options) {}
ElasticStrategy::ElasticStrategy(const TaskConfig& task,
                                 const ElasticOptions& options)
    : MultiWorkerMirroredStrategy(WorkersThatCome(task, options)),
      options_(options) {
  if (options_.min_workers == 0) {
    options_.min_workers = static_cast<int>(workers_->most() / 2 + 1);
  }
}

struct ElasticState::State {
  using VariablePtr = std::shared_ptr<headrace::Variable>;

  State(std::shared_ptr<Workers> of, const ElasticOptions& o,
        TrackablePtr objects)
      : workers(std::move(of)), options(o), checkpoint(std::move(objects)) {}
  ~State() { RemoveFolder(folder); }

  // In the order in which Python finds them, whose checkpoints get their
  // counter when it first counts.
  std::vector<VariablePtr> Variables() const {
    std::vector<TrackablePtr> all = {checkpoint.root()};
    HashSet<const Trackable*> seen = {all[0].get(),
                                      all[0]->Child("save_counter").get()};
    std::vector<VariablePtr> found;
    for (size_t i = 0; i < all.size(); ++i) {
      const TrackablePtr node = all[i];
      if (const auto* v = dynamic_cast<const VariableNode*>(node.get())) {
        if (v->variable()->initialized()) found.push_back(v->variable());
      }
      for (const auto& [name, child] : node->Children()) {
        if (seen.insert(child.get()).second) all.push_back(child);
      }
    }
    return found;
  }

  void Keep() {
    kept.clear();
    for (const VariablePtr& v : Variables()) {
      kept.emplace_back(v, Check(v->Read("a variable of an ElasticState")));
    }
  }
  void SetBack() {
    for (const auto& [variable, value] : kept) variable->Assign(value);
  }

  // A row of numbers of each worker.
  std::vector<int64_t> Gathered(const std::vector<int64_t>& numbers) {
    const Tensor own = Tensor::From<int64_t>(
        numbers, {1, static_cast<int64_t>(numbers.size())});
    return workers->Rows(own).vector<int64_t>();
  }

  // Variables that each worker made for itself may differ: once a generation
  // this is found out.
  void CheckAlike() {
    uLong total = 0;
    for (const VariablePtr& v : Variables()) {
      const headrace::Tensor t = Check(v->Read("a variable"));
      // Strings have no bytes of their own here.
      if (t.dtype() == headrace::DType::kString) continue;
      total = crc32_z(total, static_cast<const Bytef*>(t.raw()), t.bytes());
    }
    const std::vector<int64_t> all = Gathered({static_cast<int64_t>(total)});
    if (std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) !=
        all.end()) {
      std::string names;
      for (const std::string& m : workers->members()) {
        absl::StrAppend(&names, names.empty() ? "" : ", ", m);
      }
      Throw(ErrorCode::kFailedPrecondition,
            absl::StrCat("commit ", commits + 1, ", generation ",
                         workers->generation(), ": the variables of workers ",
                         names,
                         " differ. Make variables before Run, or with equal "
                         "seeds, and have all workers take the same steps"));
    }
    is_checked = true;
  }

  // All workers get the state of the one that has committed last in the newest
  // generation.
  void TakeTheNewest() {
    const std::vector<int64_t> flat = Gathered({of_generation, commits});
    using Stand = std::pair<int64_t, int64_t>;
    std::vector<Stand> stands;
    for (size_t i = 0; i < flat.size(); i += 2) {
      stands.emplace_back(flat[i], flat[i + 1]);
    }
    const auto newest = std::max_element(stands.begin(), stands.end());
    const bool alike =
        std::all_of(stands.begin(), stands.end(),
                    [&](const Stand& s) { return s == *newest; });
    if (!alike || newest->first == 0) {
      Take(static_cast<int>(newest - stands.begin()),
           stands[static_cast<size_t>(workers->rank())] == *newest);
    }
    of_generation = workers->generation();
    commits = newest->second;
    Keep();
    is_checked = false;
  }

  // The checkpoint of one worker is read by those that are not as far.
  void Take(int source, bool is_newest) {
    const bool gives = workers->rank() == source;
    const std::string path =
        absl::StrCat("ram://headrace_elastic_state_", next_folder++);
    std::vector<std::string> data(std::size(kFiles));
    if (gives) data = Written(path);
    std::vector<int64_t> sizes;
    for (const std::string& d : data) {
      sizes.push_back(static_cast<int64_t>(d.size()));
    }
    sizes = workers->Of(source, Tensor::From<int64_t>(sizes)).vector<int64_t>();
    int64_t total = 0;
    for (const int64_t n : sizes) {
      // (A worker that tells such is none of ours.)
      if (n < 0 || n > INT64_MAX / 4) {
        Throw(ErrorCode::kDataLoss,
              absl::StrCat(workers->members()[static_cast<size_t>(source)],
                           " tells of a state of ", n, " bytes"));
      }
      total += n;
    }
    std::vector<int64_t> whole(
        static_cast<size_t>((total + kWord - 1) / kWord));
    auto* bytes = reinterpret_cast<char*>(whole.data());
    if (gives) {
      for (const std::string& d : data)
        bytes = std::copy_n(d.data(), d.size(), bytes);
    }
    whole = workers->Of(source, Tensor::From<int64_t>(whole)).vector<int64_t>();
    if (gives || (is_newest && of_generation != 0)) return;
    std::string local;
    FileSystem* fs = Check(FileSystemFor(path, &local));
    Check(fs->CreateDirectory(local));
    const char* at = reinterpret_cast<const char*>(whole.data());
    for (size_t i = 0; i < std::size(kFiles); ++i) {
      const auto size = static_cast<size_t>(sizes[i]);
      auto file =
          Check(fs->OpenToWrite(local + kFiles[i], WriteMode::kTruncate));
      Check(file->Append(StringView(at, size)));
      Check(file->Close());
      at += size;
    }
    Check(checkpoint.Restore(path + "/state"));
    // Variables that are yet to be made get their values from it.
    RemoveFolder(std::exchange(folder, path));
  }

  // The bytes of a checkpoint's files.
  std::vector<std::string> Written(const std::string& path) {
    Check(checkpoint.Write(path + "/state"));
    std::string local;
    FileSystem* fs = Check(FileSystemFor(path, &local));
    std::vector<std::string> data;
    for (const char* file : kFiles) {
      data.push_back(Check(ReadWholeFile(fs, local + file)));
    }
    RemoveFolder(path);
    return data;
  }

  const std::shared_ptr<Workers> workers;
  const ElasticOptions options;
  headrace::Checkpoint checkpoint;
  int64_t commits = 0, of_generation = 0;
  std::vector<std::pair<VariablePtr, headrace::Tensor>> kept;
  bool is_checked = false;
  std::string folder;  // of the state that was taken last
};

ElasticState::ElasticState(const ElasticStrategy& strategy,
                           const std::vector<Checkpoint::Part>& parts) {
  auto root = std::make_shared<Trackable>();
  // By name, as Python's are.
  std::vector<Checkpoint::Part> sorted = parts;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const Checkpoint::Part& part : sorted) {
    Check(root->Attach(part.name, part.module ? Access::NodeOf(*part.module)
                                              : Access::NodeOf(part.variable)));
  }
  state_ = std::make_unique<State>(strategy.workers_, strategy.options_,
                                   std::move(root));
}
ElasticState::~ElasticState() = default;

int64_t ElasticState::commits() const { return state_->commits; }
int64_t ElasticState::generation() const {
  return state_->workers->generation();
}
std::vector<std::string> ElasticState::members() const {
  return state_->workers->members();
}

std::pair<int64_t, int64_t> ElasticState::Share(int64_t count) const {
  const int64_t own = state_->workers->rank(), of = state_->workers->size();
  if (count < 0 || count > INT64_MAX / (of + 1)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Share: ", count, " parts"));
  }
  return {count * own / of, count * (own + 1) / of};
}

void ElasticState::Commit() {
  if (!state_->is_checked) state_->CheckAlike();
  state_->Keep();
  ++state_->commits;
  if (const Status over = state_->workers->End(); !over.ok()) {
    Throw(ErrorCode::kAborted, std::string(over.message()));
  }
}

void ElasticState::RunAgain(const std::function<void()>& train) {
  State& s = *state_;
  bool is_done = false;
  while (true) {
    try {
      s.workers->Regroup(static_cast<size_t>(s.options.min_workers),
                         s.options.start_seconds, s.options.timeout_seconds);
    } catch (const Error& e) {
      if (is_done && e.code() == ErrorCode::kOutOfRange) return;
      throw;
    }
    try {
      s.TakeTheNewest();
      is_done = false;
      train();
      is_done = true;
      s.Gathered({s.commits});  // nobody goes before all are done
      s.workers->Leave();
      return;
    } catch (const Error& e) {
      if (s.workers->End().ok()) throw;
    }
    s.SetBack();
  }
}

}  // namespace headrace::tf::distribute
