import java.io.File;

import org.eclipse.jgit.lib.Repository;
import org.eclipse.jgit.storage.file.FileRepositoryBuilder;
import org.eclipse.jgit.transport.ReceivePack;
import org.eclipse.jgit.transport.UploadPack;

/** Serves one connection by JGit, for .ci/run servers. Usage: JGit git-upload-pack|git-receive-pack REPOSITORY */
class JGit {
	public static void main(String[] args) throws Exception {
		try (Repository repository = new FileRepositoryBuilder().setGitDir(new File(args[1])).setMustExist(true).build()) {
			if (args[0].equals("git-receive-pack")) {
				new ReceivePack(repository).receive(System.in, System.out, System.err);
			} else {
				new UploadPack(repository).upload(System.in, System.out, System.err);
			}
		}
	}
}
