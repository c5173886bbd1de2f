#include "bind/checkpoint.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "bind/python/status.h"
#include "bind/python/unlocked.h"
#include "bind/structured_value.h"
#include "bind/trackable_object.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "formats/checkpoint_reader.h"
#include "train/checkpoint.h"
#include "train/checkpoint_tensor.h"
#include "train/sharding.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// A path and the file system it names.
struct LocatedPath {
  explicit LocatedPath(const std::string& path) {
    fs = ValueOrRaise(FileSystemFor(path, &local));
  }
  FileSystem* fs;
  std::string local;
};

using Extra = std::vector<std::pair<std::string, TrackablePtr>>;

// The values to be saved, read at once; written then or later, by any thread.
GraphValues Gather(const TrackablePtr& root, const Extra& extra) {
  return ValueOrRaise(GraphValues::Gather(root, extra));
}

// A piece of a shard as Python has it: key, tensor, and "" or the full shape
// and slice ("4 3 0,2:-").
using PyPiece = std::tuple<std::string, nb::object, std::string>;

ShardPiece ToPiece(const PyPiece& from) {
  const auto& [key, object, text] = from;
  ShardPiece piece{.key = key};
  Value value;
  // Converted here under the GIL; the tensors are counted, so that writing
  // needs none.
  if (!ToValue(object.ptr(), {}, &value)) throw nb::python_error();
  // A file holds values; one inside of a graph exists when the graph runs.
  if (value.is_symbolic()) {
    RaiseTrackable(Unimplemented("a checkpoint of values inside a graph"));
  }
  piece.tensor = value.tensor();
  const ShapeAndSlice part = ValueOrRaise(ParseShapeAndSlice(text));
  if (!part.whole) {
    piece.whole = Shape(part.dims);
    piece.slice = part.slice;
    // Checked before anything is written: readers believe the slice.
    if (Shape(SliceDims(part.slice)) != piece.tensor.shape()) {
      RaiseTrackable(InvalidArgument("shard: the slice ", text, " of ", key,
                                     " is not of shape ",
                                     piece.tensor.shape()));
    }
  }
  return piece;
}

void WriteValues(const GraphValues& values, const std::string& prefix,
                 int64_t max_shard_bytes) {
  // Before the GIL goes: a path that names no file system raises.
  const LocatedPath place(prefix);
  RunUnlocked([&] {
    return values.Write(place.fs, place.local,
                        {.max_shard_bytes = max_shard_bytes});
  });
}

// Shards that hold the object graph too, as a piece.
void WritePieces(const std::string& prefix,
                 const std::vector<std::vector<PyPiece>>& shards) {
  const LocatedPath place(prefix);
  std::vector<Shard> pieces;
  for (const auto& shard : shards) {
    pieces.emplace_back();
    for (const PyPiece& piece : shard) pieces.back().push_back(ToPiece(piece));
  }
  RunUnlocked([&]() -> Status {
    HR_RETURN_IF_ERROR(PrepareFolder(place.fs, place.local));
    // On the disk before the caller records the checkpoint as complete.
    return WriteShards(place.fs, place.local, pieces, "", /*sync=*/true);
  });
}

nb::object ValueToPython(const Tensor& t) {
  PyObject* o = WrapValue(Value(t));
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

// The pieces of shards of at most so many bytes, as PyPiece.
nb::list ShardsOf(const std::vector<std::pair<std::string, nb::object>>& from,
                  int64_t most_bytes) {
  Shard values;
  for (const auto& [key, object] : from) {
    values.push_back(ToPiece({key, object, ""}));
  }
  nb::list out;
  for (const Shard& shard : ValueOrRaise(ShardsBySize(values, most_bytes))) {
    nb::list pieces;
    for (const ShardPiece& piece : shard) {
      std::string text;
      if (piece.slice) {
        text = absl::StrCat(absl::StrJoin(piece.whole.dims(), " "), " ",
                            piece.slice->ToString());
      }
      pieces.append(
          nb::make_tuple(piece.key, ValueToPython(piece.tensor), text));
    }
    out.append(pieces);
  }
  return out;
}

void AddValues(nb::module_& m) {
  nb::class_<GraphValues>(m, "GraphValues")
      .def("write", WriteValues, nb::arg("prefix"),
           nb::arg("max_shard_bytes") = 0)
      .def("serialized_graph",
           [](const GraphValues& v) {
             const std::string& bytes = v.serialized_graph();
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("items", [](const GraphValues& v) {
        nb::list out;
        for (size_t i = 0; i < v.values().size(); ++i) {
          // A value without a buffer belongs to a graph: Python reads it in a
          // session of its own.
          const ShardPiece& value = v.values()[i];
          out.append(nb::make_tuple(value.key,
                                    value.tensor.has_buffer()
                                        ? ValueToPython(value.tensor)
                                        : nb::none(),
                                    OwnerOf(v.owners()[i])));
        }
        return out;
      });
  m.def("gather_graph", Gather);
  m.def("write_shards", WritePieces);
  m.def("shards_by_size", ShardsOf);
}

// Unmatched values and objects, each a list of (name, nearest).
nb::tuple ReportOf(Restoration& restoration) {
  RaiseUnlessOk(restoration.Refresh());
  const RestoreReport report = restoration.Report();
  const auto list = [](const auto& names) {
    nb::list out;
    for (const auto& u : names) out.append(nb::make_tuple(u.name, u.nearest));
    return out;
  };
  return nb::make_tuple(report.matched, list(report.keys),
                        list(report.objects));
}

// Logs what a restoration could not match, from Python.
void LogComplaints(const std::vector<std::string>& lines) {
  // Restorations die with objects that Python holds to its last, when nothing
  // can be logged any more.
  if (!Py_IsInitialized() || PythonEnds()) return;
  // A destructor must not throw.
  const WithGil locked(std::nothrow);
  if (!locked) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // a destructor may run amid an error
  try {
    nb::module_::import_("headrace.train.load_status")
        .attr("log_complaints")(nb::cast(lines));
  } catch (nb::python_error& e) {
    // Nor can a destructor raise: Python prints what failed and goes on.
    e.discard_as_unraisable("headrace: unrestored values");
  }
  PyErr_Restore(type, value, trace);
}

void AddRestoration(nb::module_& m) {
  Restoration::SetComplaintsSink(LogComplaints);
  // The checks give None, or the text of what is wrong.
  const auto text = [](const Status& s) -> nb::object {
    if (s.ok()) return nb::none();
    return nb::str(s.message().data(), s.message().size());
  };
  nb::class_<Restoration>(m, "Restoration")
      .def("name_based", &Restoration::name_based)
      .def("check_consumed",
           [=](Restoration& r) {
             // Objects whose children are found anew (lists, networks) may have
             // got some since.
             RaiseUnlessOk(r.Refresh());
             return text(r.CheckConsumed());
           })
      .def("check_nontrivial",
           [=](Restoration& r) { return text(r.CheckNontrivial()); })
      .def("unmatched",
           [](Restoration& r) {
             RaiseUnlessOk(r.Refresh());
             nb::list out;
             for (const auto& o : r.UnmatchedObjects()) out.append(OwnerOf(o));
             return out;
           })
      .def("report", ReportOf)
      .def("complaints", &Restoration::Complaints)
      .def("expect_partial", &Restoration::ExpectPartial);
  m.def("restore_graph", [](const std::string& path, const TrackablePtr& root,
                            const Extra& extra, bool skip_slots) {
    return ValueOrRaise(RestoreGraph(path, root, extra, skip_slots));
  });
}

// ---------------------------------------------------------------- readers

CheckpointTensor LookUp(const CheckpointReader& reader,
                        const std::string& key) {
  return ValueOrRaise(reader.Lookup(key));
}

nb::object GetTensor(const CheckpointReader& reader, const std::string& key) {
  return ValueToPython(ValueOrRaise(Unlocked(
                           [&] { return ReadCheckpointTensor(reader, key); })))
      .attr("numpy")();
}

std::string DebugString(const CheckpointReader& reader) {
  std::string out;
  for (const std::string& key : reader.keys()) {
    const CheckpointTensor t = LookUp(reader, key);
    // Name and dtype as upstream's debug string has them.
    absl::StrAppend(&out, key, " (", tensorflow::DataType_Name(t.dtype), ") [");
    for (size_t i = 0; i < t.dims.size(); ++i) {
      absl::StrAppend(&out, i ? "," : "", t.dims[i]);
    }
    out += "]\n";
  }
  return out;
}

void AddReader(nb::module_& m) {
  nb::class_<CheckpointReader>(m, "CheckpointReader")
      .def("get_variable_to_shape_map",
           [](const CheckpointReader& r) {
             nb::dict out;
             for (const auto& key : r.keys()) {
               out[key.c_str()] = LookUp(r, key).dims;
             }
             return out;
           })
      .def("_dtypes",
           [](const CheckpointReader& r) {
             nb::dict out;
             for (const auto& key : r.keys()) {
               out[key.c_str()] = DTypeOfProto(LookUp(r, key).dtype);
             }
             return out;
           })
      .def(
          "has_tensor",
          [](const CheckpointReader& r, const std::string& tensor_str) {
            return r.Contains(tensor_str);
          },
          nb::arg("tensor_str"))
      .def("get_tensor", GetTensor, nb::arg("tensor_str"))
      .def("debug_string", [](const CheckpointReader& r) {
        const std::string text = DebugString(r);
        // Bytes, as upstream's binding gives them; keys need not be UTF-8.
        return nb::bytes(text.data(), text.size());
      });
  m.def("open_checkpoint", [](const std::string& prefix) {
    const LocatedPath place(prefix);
    return std::shared_ptr<CheckpointReader>(ValueOrRaise(Unlocked(
        [&] { return CheckpointReader::Open(place.fs, place.local); })));
  });
}

// ------------------------------------------------------------ state files

nb::object ReadState(const std::string& folder, const std::string& file) {
  const LocatedPath place(folder);
  const auto state = ValueOrRaise(Unlocked(
      [&] { return ReadCheckpointState(place.fs, place.local, file); }));
  if (!state) return nb::none();
  nb::object preserved = nb::none();
  if (state->last_preserved) preserved = nb::float_(*state->last_preserved);
  return nb::make_tuple(state->latest, state->all, state->timestamps,
                        preserved);
}

void WriteState(const std::string& folder, const std::string& latest,
                const std::vector<std::string>& all, const std::string& file,
                const std::vector<double>& timestamps, double preserved,
                bool keep_absolute) {
  const LocatedPath place(folder);
  CheckpointState state;
  state.latest = latest;
  state.all = all;
  state.timestamps = timestamps;
  // Zero stands for "never": protos leave it out, as upstream does.
  if (preserved > 0) state.last_preserved = preserved;
  RaiseUnlessOk(Unlocked([&] {
    return WriteCheckpointState(place.fs, place.local, state, file,
                                keep_absolute);
  }));
}

// CheckpointRotation with its errors raised.
class PyRotation {
 public:
  PyRotation(const std::string& folder, int max_to_keep, double hours)
      : rotation_(Open(folder, max_to_keep, hours)) {}
  void BeginSave() { RaiseUnlessOk(rotation_.BeginSave()); }
  void Added(const std::string& prefix) {
    RaiseUnlessOk(rotation_.Added(LocatedPath(prefix).local));
  }
  std::vector<std::string> checkpoints() const {
    return rotation_.checkpoints();
  }
  nb::object latest() const {
    if (rotation_.latest().empty()) return nb::none();
    return nb::str(rotation_.latest().c_str());
  }

 private:
  static CheckpointRotation Open(const std::string& folder, int max_to_keep,
                                 double hours) {
    const LocatedPath place(folder);
    return ValueOrRaise(Unlocked([&] {
      return CheckpointRotation::Open(place.fs, place.local,
                                      {max_to_keep, hours});
    }));
  }
  CheckpointRotation rotation_;
};

void AddState(nb::module_& m) {
  m.def("read_checkpoint_state", ReadState);
  m.def("write_checkpoint_state", WriteState, nb::arg("folder"),
        nb::arg("latest"), nb::arg("all"), nb::arg("file"),
        nb::arg("timestamps") = std::vector<double>(),
        nb::arg("preserved") = 0.0, nb::arg("keep_absolute") = false);
  m.def("delete_checkpoint", [](const std::string& prefix) {
    const LocatedPath place(prefix);
    RunUnlocked([&] {
      const Status status = DeleteCheckpoint(place.fs, place.local);
      // What is gone already is deleted.
      return absl::IsNotFound(status) ? OkStatus() : status;
    });
  });
  m.def("checkpoint_exists", [](const std::string& prefix) {
    const LocatedPath place(prefix);
    return RunUnlocked([&]() -> StatusOr<bool> {
      return CheckpointExists(place.fs, place.local);
    });
  });
  m.def("make_folder", [](const std::string& path) {
    const LocatedPath place(path);
    RunUnlocked([&] { return CreateDirectories(place.fs, place.local); });
  });
  nb::class_<PyRotation>(m, "CheckpointRotation")
      .def(nb::init<const std::string&, int, double>())
      .def("begin_save", &PyRotation::BeginSave)
      .def("added", &PyRotation::Added)
      .def("checkpoints", &PyRotation::checkpoints)
      .def("latest", &PyRotation::latest);
}

}  // namespace

void AddCheckpoint(nb::module_& m) {
  AddTrackable(m);
  AddValues(m);
  AddRestoration(m);
  AddReader(m);
  AddState(m);
}

}  // namespace headrace::bind
