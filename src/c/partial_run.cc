// Runs of a session's graph in several steps.

#include <cstring>

#include "c/session.h"
#include "c/status.h"
#include "c/tensor.h"

namespace headrace::capi {

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
    HR_RETURN_IF_ERROR(session->partial.Step(
        handle, step, std::move(feeds),
        [session](const Request& run, std::vector<Tensor> values) {
          return RunRequest(session, run, std::move(values));
        },
        &fetched));
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
    if (session->cluster) {
      const headrace::StopScope closing(&session->closing);
      HR_ASSIGN_OR_RETURN(const std::string name,
                          session->cluster->SetUpPartialRun(plan));
      *handle = capi::HandleText(name);
      return headrace::OkStatus();
    }
    HR_ASSIGN_OR_RETURN(const std::string name,
                        session->partial.SetUp(std::move(plan)));
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
