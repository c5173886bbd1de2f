#include "distributed/mpi/mpi_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"

namespace headrace::distributed {
namespace {

// What a launcher tells the processes that it starts, and which ABI it speaks.
struct LauncherVariable {
  const char* name;
  bool open_mpi;
};
constexpr LauncherVariable kLaunchers[] = {{"OMPI_COMM_WORLD_SIZE", true},
                                           {"PMIX_RANK", true},
                                           {"PMI_SIZE", false},
                                           {"PMI_RANK", false},
                                           {"PMI_FD", false},
                                           {"HYDI_CONTROL_FD", false}};

// The names that distributions and makers give: Open MPI 4 and 5; MPICH as
// Debian has it, and as itself and Intel MPI have it.
constexpr const char* kOpenMpi[] = {"libmpi.so.40"};
constexpr const char* kMpich[] = {"libmpich.so.12", "libmpi.so.12"};
constexpr char kAnyMpi[] = "libmpi.so";

// As the standard has it, of both ABIs.
constexpr int kSuccess = 0;
// Bytes that texts of errors and versions need at most: MPICH's, the longer.
constexpr int kLongestText = 8192;

struct MpichAbi {
  using Handle = int;
  struct Status {
    int count_low, count_high_and_cancelled, source, tag, error;
  };
  static constexpr int kAnySource = -2;
  static constexpr const char* kShows = "MPIR_Dup_fn";
  Handle world = 0x44000000, self = 0x44000001, byte = 0x4c00010d,
         errors_return = 0x54000001;
  bool Find(void* library) { return dlsym(library, kShows) != nullptr; }
};

struct OpenMpiAbi {
  using Handle = void*;
  struct Status {
    int source, tag, error, cancelled;
    size_t count;
  };
  static constexpr int kAnySource = -1;
  Handle world = nullptr, self = nullptr, byte = nullptr,
         errors_return = nullptr;
  // Its handles are the addresses of objects that it shows.
  bool Find(void* library) {
    world = dlsym(library, "ompi_mpi_comm_world");
    self = dlsym(library, "ompi_mpi_comm_self");
    byte = dlsym(library, "ompi_mpi_byte");
    errors_return = dlsym(library, "ompi_mpi_errors_return");
    return world != nullptr && self != nullptr && byte != nullptr &&
           errors_return != nullptr;
  }
};

template <typename Abi>
class LibraryOf final : public MpiLibrary {
 public:
  explicit LibraryOf(Abi abi) : abi_(abi) {}

  Status Bind(void* library) {
    Binder bind{library, {}};
    bind("MPI_Initialized", &initialized_);
    bind("MPI_Finalized", &finalized_);
    bind("MPI_Init_thread", &init_thread_);
    bind("MPI_Query_thread", &query_thread_);
    bind("MPI_Finalize", &finalize_);
    bind("MPI_Comm_create_keyval", &create_keyval_);
    bind("MPI_Comm_set_attr", &set_attr_);
    bind("MPI_Get_library_version", &version_);
    bind("MPI_Error_string", &error_string_);
    bind("MPI_Comm_idup", &idup_);
    bind("MPI_Comm_set_errhandler", &set_errhandler_);
    bind("MPI_Comm_rank", &comm_rank_);
    bind("MPI_Comm_size", &comm_size_);
    bind("MPI_Isend", &isend_);
    bind("MPI_Irecv", &irecv_);
    bind("MPI_Iprobe", &iprobe_);
    bind("MPI_Get_count", &get_count_);
    bind("MPI_Test", &test_);
    if (bind.missing.empty()) return OkStatus();
    return FailedPrecondition("it has no ", absl::StrJoin(bind.missing, ", "));
  }

  std::string Version() override {
    std::string text(kLongestText, '\0');
    int size = 0;
    if (version_(text.data(), &size) != kSuccess) return "unknown";
    text.resize(std::min(std::max(size, 0), kLongestText));
    return text.substr(0, text.find('\n'));
  }
  bool Begun() override { return Flag(initialized_); }
  bool Ended() override { return Flag(finalized_); }
  Status Begin(Threads* provided) override {
    int level = 0;
    // No arguments of the program are MPI's: the standard allows null for both.
    HR_RETURN_IF_ERROR(Said("MPI_Init_thread",
                            init_thread_(nullptr, nullptr, kMultiple, &level)));
    *provided = static_cast<Threads>(level);
    return OkStatus();
  }
  StatusOr<Threads> ThreadsOf() override {
    int level = 0;
    HR_RETURN_IF_ERROR(Said("MPI_Query_thread", query_thread_(&level)));
    return static_cast<Threads>(level);
  }
  Status End() override { return Said("MPI_Finalize", finalize_()); }
  // MPI_Finalize begins with the attributes of the process's own communicator,
  // and calls what deletes each.
  Status AtEnd(std::function<void()> ends) override {
    int keyval = 0;
    HR_RETURN_IF_ERROR(Said("MPI_Comm_create_keyval",
                            create_keyval_(NoCopy, Ends, &keyval, nullptr)));
    return Said("MPI_Comm_set_attr",
                set_attr_(abi_.self, keyval,
                          new std::function<void()>(std::move(ends))));
  }

  StatusOr<Copying> CopyWorld() override {
    struct Copy {
      Own world{}, request{};  // MPI writes to both until the copy is made
    };
    const auto made = std::make_shared<Copy>();
    HR_RETURN_IF_ERROR(
        Said("MPI_Comm_idup", idup_(abi_.world, &made->world, &made->request)));
    return Copying([this, made](Handle* copy) -> StatusOr<bool> {
      typename Abi::Status status{};
      int done = 0;
      HR_RETURN_IF_ERROR(
          Said("MPI_Test", test_(&made->request, &done, &status)));
      if (done != 0) *copy = Shown(made->world);
      return done != 0;
    });
  }
  Status ReturnErrors(Handle world) override {
    return Said("MPI_Comm_set_errhandler",
                set_errhandler_(OwnOf(world), abi_.errors_return));
  }
  Status RankAndSize(Handle world, int* rank, int* size) override {
    HR_RETURN_IF_ERROR(Said("MPI_Comm_rank", comm_rank_(OwnOf(world), rank)));
    return Said("MPI_Comm_size", comm_size_(OwnOf(world), size));
  }
  StatusOr<Handle> Send(Handle world, int to, int tag, const void* data,
                        int bytes) override {
    Own request{};
    HR_RETURN_IF_ERROR(Said("MPI_Isend", isend_(data, bytes, abi_.byte, to, tag,
                                                OwnOf(world), &request)));
    return Shown(request);
  }
  StatusOr<Handle> Receive(Handle world, int from, int tag, void* data,
                           int bytes) override {
    Own request{};
    HR_RETURN_IF_ERROR(Said("MPI_Irecv", irecv_(data, bytes, abi_.byte, from,
                                                tag, OwnOf(world), &request)));
    return Shown(request);
  }
  StatusOr<bool> Probe(Handle world, int from, int tag, Found* found) override {
    typename Abi::Status status{};
    int there = 0, bytes = 0;
    HR_RETURN_IF_ERROR(
        Said("MPI_Iprobe", iprobe_(from == kAnySource ? Abi::kAnySource : from,
                                   tag, OwnOf(world), &there, &status)));
    if (there == 0) return false;
    HR_RETURN_IF_ERROR(
        Said("MPI_Get_count", get_count_(&status, abi_.byte, &bytes)));
    *found = {status.source, status.tag, bytes};
    return true;
  }
  StatusOr<bool> Test(Handle* request) override {
    typename Abi::Status status{};
    Own own = OwnOf(*request);
    int done = 0;
    HR_RETURN_IF_ERROR(Said("MPI_Test", test_(&own, &done, &status)));
    *request = Shown(own);
    return done != 0;
  }

 private:
  using Own = typename Abi::Handle;
  using StatusOut = typename Abi::Status*;

  struct Binder {
    void* library;
    std::vector<std::string> missing;
    template <typename F>
    void operator()(const char* name, F** to) {
      *to = reinterpret_cast<F*>(dlsym(library, name));
      if (*to == nullptr) missing.emplace_back(name);
    }
  };

  static int NoCopy(Own, int, void*, void*, void*, int* copied) {
    *copied = 0;
    return kSuccess;
  }
  static int Ends(Own, int, void* attribute, void*) {
    const std::unique_ptr<std::function<void()>> ends(
        static_cast<std::function<void()>*>(attribute));
    (*ends)();
    return kSuccess;
  }
  static Own OwnOf(Handle handle) {
    if constexpr (std::is_pointer_v<Own>) {
      return reinterpret_cast<Own>(handle);
    } else {
      return static_cast<Own>(handle);
    }
  }
  static Handle Shown(Own own) {
    if constexpr (std::is_pointer_v<Own>) {
      return reinterpret_cast<Handle>(own);
    } else {
      return static_cast<unsigned>(own);
    }
  }
  static bool Flag(int (*ask)(int*)) {
    int yes = 0;
    return ask(&yes) == kSuccess && yes != 0;
  }
  Status Said(const char* function, int code) {
    if (code == kSuccess) [[likely]]
      return OkStatus();
    std::string text(kLongestText, '\0');
    int size = 0;
    if (error_string_(code, text.data(), &size) != kSuccess) size = 0;
    text.resize(std::min(std::max(size, 0), kLongestText));
    return Unavailable(function, ": ",
                       text.empty() ? absl::StrCat("error ", code) : text);
  }

  Abi abi_;
  int (*initialized_)(int*);
  int (*finalized_)(int*);
  int (*init_thread_)(int*, char***, int, int*);
  int (*query_thread_)(int*);
  int (*finalize_)();
  int (*create_keyval_)(int (*)(Own, int, void*, void*, void*, int*),
                        int (*)(Own, int, void*, void*), int*, void*);
  int (*set_attr_)(Own, int, void*);
  int (*version_)(char*, int*);
  int (*error_string_)(int, char*, int*);
  int (*idup_)(Own, Own*, Own*);
  int (*set_errhandler_)(Own, Own);
  int (*comm_rank_)(Own, int*);
  int (*comm_size_)(Own, int*);
  int (*isend_)(const void*, int, Own, int, int, Own, Own*);
  int (*irecv_)(void*, int, Own, int, int, Own, Own*);
  int (*iprobe_)(int, int, Own, int*, StatusOut);
  int (*get_count_)(const typename Abi::Status*, Own, int*);
  int (*test_)(Own*, int*, StatusOut);
};

template <typename Abi>
StatusOr<std::unique_ptr<MpiLibrary>> Bound(Abi abi, void* library) {
  auto made = std::make_unique<LibraryOf<Abi>>(abi);
  HR_RETURN_IF_ERROR(made->Bind(library));
  return std::unique_ptr<MpiLibrary>(std::move(made));
}

StatusOr<std::unique_ptr<MpiLibrary>> Open(const std::string& place) {
  // To the whole process, as Open MPI's plugins look for its symbols there; for
  // good, as MPI's threads and handlers live on.
  void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* error = dlerror();
    return FailedPrecondition(error != nullptr ? error : place);
  }
  StatusOr<std::unique_ptr<MpiLibrary>> made = FailedPrecondition(
      "it is neither of Open MPI's ABI (ompi_mpi_comm_world) nor of MPICH's (",
      MpichAbi::kShows, ")");
  if (OpenMpiAbi abi; abi.Find(library)) {
    made = Bound(abi, library);
  } else if (MpichAbi abi; abi.Find(library)) {
    made = Bound(abi, library);
  }
  if (made.ok()) return made;
  return FailedPrecondition(place, ": ", made.status().message());
}

}  // namespace

StatusOr<std::unique_ptr<MpiLibrary>> LoadMpi(
    const std::vector<std::string>& places) {
  std::vector<std::string> errors;
  for (const std::string& place : places) {
    auto made = Open(place);
    if (made.ok()) return made;
    errors.emplace_back(made.status().message());
  }
  return FailedPrecondition(
      "no MPI library can be loaded (", absl::StrJoin(errors, "; "),
      "): install Open MPI or MPICH, or name the library by "
      "HEADRACE_MPI_LIBRARY=/path/to/libmpi.so");
}

std::string MpiLauncher(std::string* looked_for) {
  looked_for->clear();
  std::string found;
  for (const auto& [name, open_mpi] : kLaunchers) {
    absl::StrAppend(looked_for, looked_for->empty() ? "" : ", ", name);
    if (found.empty() && std::getenv(name) != nullptr) found = name;
  }
  return found;
}

std::vector<std::string> MpiPlaces() {
  const char* given = std::getenv("HEADRACE_MPI_LIBRARY");
  if (given != nullptr && *given != '\0') return {given};
  std::string looked_for;
  const std::string launcher = MpiLauncher(&looked_for);
  bool open_mpi = true;
  for (const auto& [name, its] : kLaunchers) {
    if (launcher == name) open_mpi = its;
  }
  std::vector<std::string> places(std::begin(kMpich), std::end(kMpich));
  places.insert(open_mpi ? places.begin() : places.end(), std::begin(kOpenMpi),
                std::end(kOpenMpi));
  places.emplace_back(kAnyMpi);
  // What the program uses already is the one that is meant.
  std::stable_partition(
      places.begin(), places.end(), [](const std::string& place) {
        return dlopen(place.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
      });
  return places;
}

}  // namespace headrace::distributed
