#include "c/partial_run.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "c/status.h"
#include "c/tensor.h"
#include "graph/function.h"

namespace headrace::capi {

PartialRun::Needed PartialRun::NeededFor(std::vector<Node*> open) const {
  Needed found;
  HashSet<const Node*> seen;
  while (!open.empty()) {
    Node* n = open.back();
    open.pop_back();
    bool known = n->num_outputs() > 0;
    for (int i = 0; i < n->num_outputs(); ++i) {
      known = known && known_.contains({n, i});
    }
    if (known || !seen.insert(n).second) continue;
    if (n->def().Is(OpRole::kPlaceholder) && n->num_inputs() == 0) {
      found.missing = n;
      return found;
    }
    found.nodes.push_back(n);
    for (const Edge& e : n->inputs()) {
      if (!known_.contains(e)) open.push_back(e.node);
    }
    for (Node* c : n->control_inputs()) open.push_back(c);
  }
  return found;
}

Status PartialRun::Check(StringView what, const Edge& e,
                         const std::vector<Edge>& planned,
                         StringView done) const {
  const std::string name = absl::StrCat(e.node->name(), ":", e.index);
  if (std::find(planned.begin(), planned.end(), e) == planned.end()) {
    return InvalidArgument("The ", what, " ", name,
                           " was not specified in partial_run_setup.");
  }
  const bool again = what == "feed" ? known_.contains(e) : fetched_.contains(e);
  if (again) {
    return InvalidArgument("The ", what, " ", name, " has already been ", done,
                           ".");
  }
  return OkStatus();
}

bool PartialRun::finished() const {
  const auto fed = [&](const Edge& e) { return known_.contains(e); };
  const auto fetched = [&](const Edge& e) { return fetched_.contains(e); };
  const auto ran = [&](Node* n) { return ran_.contains(n); };
  return absl::c_all_of(plan_.feeds, fed) &&
         absl::c_all_of(plan_.fetches, fetched) &&
         absl::c_all_of(plan_.targets, ran);
}

Status PartialRun::CheckNotAgain(const Needed& needed) const {
  for (const Node* n : needed.nodes) {
    if (done_.contains(n) && HasSideEffect(n->def())) {
      return Unimplemented("partial run: ", n->name(),
                           " has run in an earlier step, and what is fetched "
                           "now would run it again");
    }
  }
  return OkStatus();
}

Status PartialRun::Step(TF_Session* session, const Request& step,
                        std::vector<Tensor> feeds,
                        std::vector<Tensor>* fetched) {
  for (const Edge& e : step.feeds) {
    HR_RETURN_IF_ERROR(Check("feed", e, plan_.feeds, "fed"));
  }
  for (const Edge& e : step.fetches) {
    HR_RETURN_IF_ERROR(Check("fetch", e, plan_.fetches, "fetched"));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    known_.insert_or_assign(step.feeds[i], std::move(feeds[i]));
  }
  Request run;
  std::vector<Node*> wanted;
  for (const Edge& e : step.fetches) wanted.push_back(e.node);
  Needed needed = NeededFor(wanted);
  if (needed.missing) {
    return InvalidArgument("Fetch ", step.fetches[0].node->name(), ":",
                           step.fetches[0].index,
                           " can't be computed from the feeds that have been "
                           "fed already: ",
                           needed.missing->name(), " is not known.");
  }
  // Targets that can run do.
  for (Node* target : plan_.targets) {
    if (ran_.contains(target)) continue;
    Needed more = NeededFor({target});
    if (more.missing) continue;
    run.targets.push_back(target);
    needed.nodes.insert(needed.nodes.end(), more.nodes.begin(),
                        more.nodes.end());
  }
  for (Node* target : step.targets) {
    if (ran_.contains(target) ||
        std::find(run.targets.begin(), run.targets.end(), target) !=
            run.targets.end()) {
      continue;
    }
    return InvalidArgument("The target ", target->name(),
                           " was not specified in partial_run_setup, or wants "
                           "what has not been fed yet.");
  }
  HR_RETURN_IF_ERROR(CheckNotAgain(needed));
  std::vector<Tensor> values;
  for (const auto& [edge, value] : known_) {
    run.feeds.push_back(edge);
    values.push_back(value);
  }
  run.fetches = step.fetches;
  for (Node* n : needed.nodes) {
    for (int i = 0; n->def().is_stateful && i < n->num_outputs(); ++i) {
      const DType d = n->output_type(i);
      if (d == DType::kResource || d == DType::kVariant || IsRef(d)) continue;
      run.fetches.push_back({n, i});
    }
  }
  HR_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                      RunRequest(session, run, std::move(values)));
  for (size_t i = 0; i < run.fetches.size(); ++i) {
    known_.insert_or_assign(run.fetches[i], results[i]);
  }
  for (const Edge& e : step.fetches) fetched_.insert(e);
  for (const Node* n : needed.nodes) {
    if (n->def().is_stateful) done_.insert(n);
  }
  ran_.insert(run.targets.begin(), run.targets.end());
  results.resize(step.fetches.size());
  *fetched = std::move(results);
  return OkStatus();
}

namespace {

// A text for the caller, who deletes it.
const char* HandleText(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Status StepOf(TF_Session* session, const char* handle, const Request& step,
              TF_Tensor* const* values, TF_Tensor** results) {
  HR_RETURN_IF_ERROR(NotNull(handle, "handle"));
  HR_RETURN_IF_ERROR(CheckList(values, step.feeds.size(), "input values"));
  HR_RETURN_IF_ERROR(CheckList(results, step.fetches.size(), "output values"));
  HR_RETURN_IF_ERROR(session->CheckOpen());
  std::vector<Tensor> feeds;
  for (size_t i = 0; i < step.feeds.size(); ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, ToTensor(values[i]));
    feeds.push_back(std::move(t));
  }
  std::vector<Tensor> fetched;
  if (session->cluster) {
    const StopScope closing(&session->closing);
    HR_RETURN_IF_ERROR(
        session->cluster->RunPart(handle, step, std::move(feeds), &fetched));
  } else {
    MutexLock lock(session->partial_mutex);
    auto it = session->partial.find(handle);
    if (it == session->partial.end()) {
      return InvalidArgument(
          "Must run 'setup' before performing partial runs!");
    }
    HR_RETURN_IF_ERROR(
        it->second->Step(session, step, std::move(feeds), &fetched));
    if (it->second->finished()) session->partial.erase(it);
  }
  std::vector<std::unique_ptr<TF_Tensor>> made;
  for (Tensor& t : fetched) {
    HR_ASSIGN_OR_RETURN(TF_Tensor * one, FromTensor(std::move(t)));
    made.emplace_back(one);
  }
  for (size_t i = 0; i < made.size(); ++i) results[i] = made[i].release();
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::Status;

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs,
                         int ninputs, const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets,
                         const char** handle, TF_Status* status) {
  if (handle) *handle = nullptr;
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(handle, "handle"));
    HR_ASSIGN_OR_RETURN(capi::Request plan,
                        capi::RequestOf(session, inputs, ninputs, outputs,
                                        noutputs, target_opers, ntargets));
    HR_RETURN_IF_ERROR(session->CheckOpen());
    if (plan.fetches.empty() && plan.targets.empty()) {
      return headrace::InvalidArgument(
          "Must specify at least one target to fetch or execute.");
    }
    if (session->cluster) {
      const headrace::StopScope closing(&session->closing);
      HR_ASSIGN_OR_RETURN(const std::string name,
                          session->cluster->SetUpPartialRun(plan));
      *handle = capi::HandleText(name);
      return headrace::OkStatus();
    }
    headrace::MutexLock lock(session->partial_mutex);
    const std::string name =
        absl::StrCat("partial_run_", ++session->partial_count);
    session->partial[name] =
        std::make_shared<capi::PartialRun>(std::move(plan));
    *handle = capi::HandleText(name);
    return headrace::OkStatus();
  });
}

void TF_SessionPRun(TF_Session* session, const char* handle,
                    const TF_Output* inputs, TF_Tensor* const* input_values,
                    int ninputs, const TF_Output* outputs,
                    TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets,
                    TF_Status* status) {
  for (int i = 0; output_values && i < noutputs; ++i) {
    output_values[i] = nullptr;
  }
  capi::Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(capi::Request step,
                        capi::RequestOf(session, inputs, ninputs, outputs,
                                        noutputs, target_opers, ntargets));
    return capi::StepOf(session, handle, step, input_values, output_values);
  });
}

void TF_DeletePRunHandle(const char* handle) { delete[] handle; }
