#include "bind/checkpoint.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/files.h"
#include "bind/dtype_object.h"
#include "bind/status.h"
#include "bind/tensor_object.h"
#include "bind/trackable_object.h"
#include "formats/checkpoint_reader.h"
#include "train/checkpoint.h"
#include "train/checkpoint_tensor.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// A path and the file system it names.
struct Place {
  explicit Place(const std::string& path) {
    fs = ValueOrRaise(FileSystemFor(path, &local));
  }
  FileSystem* fs;
  std::string local;
};

using Extra = std::vector<std::pair<std::string, TrackablePtr>>;

void SaveGraph(const TrackablePtr& root, const Extra& extra,
               const std::string& prefix) {
  const Place place(prefix);
  const GraphValues values = ValueOrRaise(GraphValues::Gather(root, extra));
  Status status;
  {
    nb::gil_scoped_release unlocked;
    status = values.Write(place.fs, place.local, {});
  }
  RaiseUnlessOk(status);
}

// Unmatched values and objects, each a list of (name, nearest).
nb::tuple ReportOf(const Restoration& restoration) {
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
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return;
  nb::gil_scoped_acquire locked;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // a destructor may run amid an error
  try {
    nb::module_::import_("headrace.train.load_status")
        .attr("log_complaints")(nb::cast(lines));
  } catch (nb::python_error& e) {
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
           [=](Restoration& r) { return text(r.CheckConsumed()); })
      .def("check_nontrivial",
           [=](Restoration& r) { return text(r.CheckNontrivial()); })
      .def("unmatched",
           [](Restoration& r) {
             nb::list out;
             for (const auto& o : r.UnmatchedObjects()) out.append(OwnerOf(o));
             return out;
           })
      .def("report", ReportOf)
      .def("complaints", &Restoration::Complaints)
      .def("expect_partial", &Restoration::ExpectPartial);
  m.def("save_graph", SaveGraph);
  m.def("restore_graph", [](const std::string& path, const TrackablePtr& root,
                            const Extra& extra) {
    return ValueOrRaise(RestoreGraph(path, root, extra));
  });
}

// ---------------------------------------------------------------- readers

nb::object DType(tensorflow::DataType dtype) {
  PyObject* o = DTypeObject(static_cast<headrace::DType>(dtype));
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

CheckpointTensor LookUp(const CheckpointReader& reader,
                        const std::string& key) {
  return ValueOrRaise(reader.Lookup(key));
}

nb::object GetTensor(const CheckpointReader& reader, const std::string& key) {
  const Tensor t = ValueOrRaise(ReadCheckpointTensor(reader, key));
  PyObject* o = WrapValue(Value(t));
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o).attr("numpy")();
}

std::string DebugString(const CheckpointReader& reader) {
  std::string out;
  for (const std::string& key : reader.keys()) {
    const CheckpointTensor t = LookUp(reader, key);
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
               out[key.c_str()] = DType(LookUp(r, key).dtype);
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
        return nb::bytes(text.data(), text.size());
      });
  m.def("open_checkpoint", [](const std::string& prefix) {
    const Place place(prefix);
    return std::shared_ptr<CheckpointReader>(
        ValueOrRaise(CheckpointReader::Open(place.fs, place.local)));
  });
}

// ------------------------------------------------------------ state files

nb::object ReadState(const std::string& folder, const std::string& file) {
  const Place place(folder);
  const auto state =
      ValueOrRaise(ReadCheckpointState(place.fs, place.local, file));
  if (!state) return nb::none();
  nb::object preserved = nb::none();
  if (state->last_preserved) preserved = nb::float_(*state->last_preserved);
  return nb::make_tuple(state->latest, state->all, state->timestamps,
                        preserved);
}

void WriteState(const std::string& folder, const std::string& latest,
                const std::vector<std::string>& all, const std::string& file) {
  const Place place(folder);
  CheckpointState state;
  state.latest = latest;
  state.all = all;
  RaiseUnlessOk(WriteCheckpointState(place.fs, place.local, state, file));
}

// CheckpointRotation with its errors raised.
class PyRotation {
 public:
  PyRotation(const std::string& folder, int max_to_keep, double hours)
      : rotation_(Open(folder, max_to_keep, hours)) {}
  void Added(const std::string& prefix) {
    RaiseUnlessOk(rotation_.Added(Place(prefix).local));
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
    const Place place(folder);
    return ValueOrRaise(
        CheckpointRotation::Open(place.fs, place.local, {max_to_keep, hours}));
  }
  CheckpointRotation rotation_;
};

void AddState(nb::module_& m) {
  m.def("read_checkpoint_state", ReadState);
  m.def("write_checkpoint_state", WriteState);
  m.def("checkpoint_exists", [](const std::string& prefix) {
    const Place place(prefix);
    return CheckpointExists(place.fs, place.local);
  });
  m.def("make_folder", [](const std::string& path) {
    const Place place(path);
    RaiseUnlessOk(CreateDirectories(place.fs, place.local));
  });
  nb::class_<PyRotation>(m, "CheckpointRotation")
      .def(nb::init<const std::string&, int, double>())
      .def("added", &PyRotation::Added)
      .def("checkpoints", &PyRotation::checkpoints)
      .def("latest", &PyRotation::latest);
}

}  // namespace

void AddCheckpoint(nb::module_& m) {
  AddTrackable(m);
  AddRestoration(m);
  AddReader(m);
  AddState(m);
}

}  // namespace headrace::bind
