/* Light and dark: as the system says, or as the button was pressed last. */
{
  const root = document.documentElement, wish = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => { root.classList.toggle("dark", dark); document.dispatchEvent(new Event("themechange")); };
  set(wish.matches);
  wish.addEventListener("change", (event) => set(event.matches));
  document.getElementById("theme").addEventListener("click", () => set(!root.classList.contains("dark")));
}
