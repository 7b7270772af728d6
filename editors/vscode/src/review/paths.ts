/** Which of the changed files a diff means by a name; undefined when none or several would fit. Pure. */
export function pathOf(name: string, changed: readonly string[]): string | undefined {
  const fits = changed.filter((path) => path === name || path.replaceAll("\\", "/").endsWith(`/${name}`));
  return fits.length === 1 ? fits[0] : undefined;
}
