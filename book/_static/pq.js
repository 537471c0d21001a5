// The filter of the table of claims and the answers of quizzes; all else works without a script.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("pre")) { if (!block.hasAttribute("tabindex")) block.tabIndex = 0; }
  for (const scroll of document.querySelectorAll(".table-wrapper, .pq-scroll, .math-wrapper, div.math")) scroll.tabIndex = 0;
  for (const quiz of document.querySelectorAll(".pq-quiz")) {
    quiz.addEventListener("change", (event) => {
      const { right, feedback } = event.target.dataset;
      quiz.querySelector("p").textContent = (right === "true" ? "Right. " : "No. ") + feedback;
    });
  }
  const table = document.querySelector(".pq-claims");
  if (!table) return;
  const text = document.querySelector("#claims-text"), verdict = document.querySelector("#claims-verdict");
  const grade = document.querySelector("#claims-grade"), count = document.querySelector("#claims-count");
  const rows = [...table.tBodies[0].rows];
  const show = () => {
    const wanted = text.value.toLowerCase();
    let seen = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted)
        && (!verdict.value || row.dataset.verdict === verdict.value) && (!grade.value || row.dataset.grade === grade.value);
      row.hidden = !fits;
      seen += fits;
    }
    count.textContent = `${seen} of ${rows.length} statements`;
  };
  for (const input of [text, verdict, grade]) input.addEventListener("input", show);
  const open = () => { const row = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (row) row.hidden = false; };
  addEventListener("hashchange", open);
  show();
  open();
});
